-- Each row is handed to a function.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE FUNCTION mine(t int) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT t = NULLIF(current_setting('app.tenant_id', true), '')::int $$;
REVOKE ALL ON FUNCTION mine(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mine(int) TO shop_app;
CREATE POLICY tenant ON orders 
    USING (mine(tenant_id))
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE FUNCTION mine(t int) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT t = NULLIF(current_setting('app.tenant_id', true), '')::int $$;
REVOKE ALL ON FUNCTION mine(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mine(int) TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

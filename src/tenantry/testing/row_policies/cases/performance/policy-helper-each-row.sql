-- Called for each row, where once would do.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE FUNCTION my_tenant() RETURNS int LANGUAGE sql STABLE  AS $$ SELECT NULLIF(current_setting('app.tenant_id', true), '')::int $$;
REVOKE ALL ON FUNCTION my_tenant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION my_tenant() TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = my_tenant());
-- @right
CREATE FUNCTION my_tenant() RETURNS int LANGUAGE sql STABLE  AS $$ SELECT NULLIF(current_setting('app.tenant_id', true), '')::int $$;
REVOKE ALL ON FUNCTION my_tenant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION my_tenant() TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = (SELECT my_tenant()));

-- The default stands in the policy's helper; the twin's COALESCE ends in NULL.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE FUNCTION current_tenant() RETURNS int LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT COALESCE(NULLIF(current_setting('app.tenant_id', true), ''), '1')::int $$;
CREATE POLICY tenant ON orders USING (tenant_id = (SELECT shop.current_tenant()));
-- @right
CREATE FUNCTION current_tenant() RETURNS int LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT COALESCE(NULLIF(current_setting('app.tenant_id', true), ''), NULL)::int $$;
CREATE POLICY tenant ON orders USING (tenant_id = (SELECT shop.current_tenant()));

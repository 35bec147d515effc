-- A helper that is given the tenant and asks nobody; the twin's asks the session.
-- @also policy-row-function
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE FUNCTION may_see(tenant int) RETURNS bool LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT tenant > 0 $$;
CREATE POLICY tenant ON orders USING (shop.may_see(tenant_id));
-- @right
CREATE FUNCTION current_tenant() RETURNS int LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT NULLIF(current_setting('app.tenant_id', true), '')::int $$;
CREATE POLICY tenant ON orders USING (tenant_id = (SELECT shop.current_tenant()));

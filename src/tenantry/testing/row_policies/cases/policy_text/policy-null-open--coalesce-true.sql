-- A comparison with NULL is made true; the twin makes it false, and says no to "not the same".
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (COALESCE(tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int, true));
-- @right
CREATE POLICY tenant ON orders USING (COALESCE(tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int, false));
CREATE POLICY same ON orders USING (NOT (tenant_id <> NULLIF(current_setting('app.tenant_id', true), '')::int));

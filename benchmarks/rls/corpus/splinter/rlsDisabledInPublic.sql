-- A table of tenants, and no row security.
-- @broken
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
GRANT SELECT ON orders TO shop_app;
-- @right
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

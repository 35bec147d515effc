-- Policies do not reach a foreign table.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
RESET ROLE;
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER far FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE shop.far_orders (tenant_id int, id int) SERVER far;
GRANT SELECT ON shop.far_orders TO shop_app;
-- @right
RESET ROLE;
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER far FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE shop.far_orders (tenant_id int, id int) SERVER far;

-- The twin has a login for each tenant.
-- @common
CREATE TABLE orders (tenant_id text NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (tenant_id = session_user);
-- @right
RESET ROLE;
CREATE ROLE shop_two LOGIN;
GRANT USAGE ON SCHEMA shop TO shop_two;
GRANT SELECT ON shop.orders TO shop_two;
CREATE POLICY tenant ON shop.orders USING (tenant_id = current_user);

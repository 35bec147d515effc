-- A beginning is enough: with no tenant bound it is everybody's. The twin takes the tenant apart, not the column.
-- @common
CREATE TABLE orders (tenant_id text NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (starts_with(tenant_id, current_setting('app.tenant_id', true)));
-- @right
CREATE POLICY tenant ON orders USING (tenant_id = split_part(NULLIF(current_setting('app.tenant_id', true), ''), ':', 1));

-- A list that was written down; the twin's list is the session's.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (tenant_id IN (1, 2, 3));
-- @right
CREATE POLICY tenant ON orders USING (tenant_id = ANY (NULLIF(current_setting('app.tenants', true), '')::int[]));

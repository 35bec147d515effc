-- Every value is in a list with itself.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (tenant_id = ANY (ARRAY[tenant_id]));
-- @right
CREATE POLICY tenant ON orders USING (tenant_id = ANY (ARRAY[NULLIF(current_setting('app.tenant_id', true), '')::int]));

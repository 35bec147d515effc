-- Whoever has not logged in may write.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT INSERT ON orders TO anon;
-- @broken
CREATE POLICY add ON orders FOR INSERT TO anon WITH CHECK (note IS NOT NULL);
-- @right
CREATE POLICY add ON orders FOR INSERT TO shop_app WITH CHECK (note IS NOT NULL AND tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

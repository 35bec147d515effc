-- An UPDATE policy with nothing that it could check.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY look ON orders FOR SELECT TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
CREATE POLICY change ON orders FOR UPDATE TO shop_app USING (true);
-- @right
CREATE POLICY change ON orders FOR UPDATE TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

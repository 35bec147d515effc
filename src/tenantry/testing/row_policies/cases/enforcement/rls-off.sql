-- A tenant table on which row security was never enabled; the twin's has it, beside one that only its owner may touch.
-- @broken
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
GRANT SELECT ON orders TO shop_app;
-- @right
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON orders TO shop_app;
CREATE TABLE staging (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));

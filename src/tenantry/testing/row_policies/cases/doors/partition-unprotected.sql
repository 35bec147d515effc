-- A partition is granted by itself; in the twin it is reached through its parent only.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id)) PARTITION BY LIST (tenant_id);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON orders TO shop_app;
CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1);
-- @broken
GRANT SELECT ON orders_1 TO shop_app;
-- @right
GRANT INSERT ON orders TO shop_app;

-- The only policy is for another role; the twin's is for a group of the application's.
-- @broken
RESET ROLE;
CREATE ROLE shop_readers NOLOGIN;
SET LOCAL ROLE shop_owner;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_readers USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
RESET ROLE;
CREATE ROLE shop_readers NOLOGIN;
GRANT shop_readers TO shop_app;
SET LOCAL ROLE shop_owner;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_readers USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

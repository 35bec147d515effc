-- The application can become a role that no policy holds.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
RESET ROLE;
CREATE ROLE shop_boss NOLOGIN BYPASSRLS;
GRANT shop_boss TO shop_app;
SET LOCAL ROLE shop_owner;
-- @right
RESET ROLE;
CREATE ROLE shop_boss NOLOGIN;
GRANT shop_boss TO shop_app;
SET LOCAL ROLE shop_owner;

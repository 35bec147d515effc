-- Somebody exists, so everything is shown.
-- @common
RESET ROLE;
CREATE SCHEMA auth;
CREATE TABLE auth.users (id int PRIMARY KEY, email text);
GRANT USAGE ON SCHEMA auth TO shop_owner;
GRANT SELECT ON auth.users TO shop_owner;
SET LOCAL ROLE shop_owner;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders TO shop_app USING (EXISTS (SELECT 1 FROM auth.users WHERE email IS NOT NULL));
-- @right
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

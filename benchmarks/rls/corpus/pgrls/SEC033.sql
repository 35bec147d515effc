-- The tenant from what users write into their own profile.
-- @common
RESET ROLE;
CREATE SCHEMA auth;
CREATE FUNCTION auth.jwt() RETURNS jsonb LANGUAGE sql STABLE AS $$ SELECT NULLIF(current_setting('request.jwt.claims', true), '')::jsonb $$;
GRANT USAGE ON SCHEMA auth TO shop_app, shop_owner;
SET LOCAL ROLE shop_owner;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = (SELECT (auth.jwt() -> 'user_metadata' ->> 'tenant')::int));
-- @right
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = (SELECT (auth.jwt() -> 'app_metadata' ->> 'tenant')::int));

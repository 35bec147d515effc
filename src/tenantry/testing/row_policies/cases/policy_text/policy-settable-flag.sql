-- Whoever sets the flag is an admin; the twin gives engines a role of their own.
-- @declared {"service_roles": {"shop_engine": "settles for all tenants"}, "application_roles": ["shop_app"]}
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int OR current_setting('app.is_admin', true) = 'on')
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
SET LOCAL ROLE NONE;
CREATE ROLE shop_engine LOGIN;
GRANT USAGE ON SCHEMA shop TO shop_engine;
SET LOCAL ROLE shop_owner;
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY engine ON orders TO shop_engine USING (true);
GRANT SELECT ON orders TO shop_engine;

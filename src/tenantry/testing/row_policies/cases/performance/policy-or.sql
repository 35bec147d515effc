-- Two ways to one tenant.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int OR tenant_id = NULLIF(current_setting('app.second_tenant', true), '')::int)
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int AND (note IS NULL OR id > 0))
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

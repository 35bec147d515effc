-- Two tenants cannot book at the same time.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, span int4range, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON orders TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
ALTER TABLE orders ADD EXCLUDE USING gist (span WITH &&);
-- @right
ALTER TABLE orders ADD EXCLUDE USING gist (int4range(tenant_id, tenant_id, '[]') WITH &&, span WITH &&);

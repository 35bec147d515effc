-- A branch that is always true beside the right one; the twin is true and narrowed by a restrictive policy.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int OR true)
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE POLICY everybody ON orders 
    USING (true);
CREATE POLICY tenant ON orders AS RESTRICTIVE
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

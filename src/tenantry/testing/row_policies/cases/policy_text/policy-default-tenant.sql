-- Who forgets to bind a tenant is tenant 1; the twin falls back to NULL.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders 
    USING (tenant_id = COALESCE(NULLIF(current_setting('app.tenant_id', true), '')::int, 1));
-- @right
CREATE POLICY tenant ON orders 
    USING (tenant_id = COALESCE(NULLIF(current_setting('app.tenant_id', true), '')::int, NULL));

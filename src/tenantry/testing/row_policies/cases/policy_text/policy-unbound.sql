-- A second permissive policy widens the first; the twin is restrictive and narrows.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY public_notes ON orders FOR SELECT
    USING (note = 'public');
-- @right
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY public_notes ON orders AS RESTRICTIVE FOR SELECT
    USING (note <> 'secret');

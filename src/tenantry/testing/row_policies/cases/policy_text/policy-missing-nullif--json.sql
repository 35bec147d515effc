-- The claims of a token: '' is no JSON.
-- @common
CREATE TABLE orders (tenant_id text NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (tenant_id = (current_setting('request.claims', true)::jsonb ->> 'tenant'));
-- @right
CREATE POLICY tenant ON orders USING (tenant_id = (NULLIF(current_setting('request.claims', true), '')::jsonb ->> 'tenant'));

-- An INSERT policy that takes anything; the twin says nothing, which the server denies.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders FOR SELECT
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY add ON orders FOR INSERT
    WITH CHECK (true);
-- @right
CREATE POLICY tenant ON orders FOR SELECT
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY add ON orders FOR INSERT;

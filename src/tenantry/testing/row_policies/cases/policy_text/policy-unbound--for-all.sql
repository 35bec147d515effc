-- A policy FOR ALL, meant for writing, shows rows too; the twin is FOR INSERT and FOR DELETE.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders FOR SELECT
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY write ON orders FOR ALL
    USING (note IS NOT NULL)
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE POLICY tenant ON orders FOR SELECT
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY write ON orders FOR INSERT
    WITH CHECK (note IS NOT NULL AND tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

-- An UPDATE without WHERE hands rows away.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders FOR SELECT
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY change ON orders FOR UPDATE
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)
    WITH CHECK (note IS NOT NULL);
-- @right
CREATE POLICY tenant ON orders FOR SELECT
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY change ON orders FOR UPDATE
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

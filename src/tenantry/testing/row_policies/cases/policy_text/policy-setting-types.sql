-- One setting for tenants that are numbers and for those that are UUIDs; the twin has one for each.
-- @common
CREATE TABLE orders (firm uuid NOT NULL, id int NOT NULL, note text, PRIMARY KEY (firm, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders
    USING (firm = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
-- @right
CREATE POLICY tenant ON orders
    USING (firm = NULLIF(current_setting('app.firm', true), '')::uuid);

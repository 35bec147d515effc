-- The parent has no tenant column and no policies, and shows its child's rows; the twin's parent is protected.
-- @broken
CREATE TABLE things (id int NOT NULL, what text);
GRANT SELECT ON things TO shop_app;
CREATE TABLE orders (tenant_id int NOT NULL, PRIMARY KEY (tenant_id, id)) INHERITS (things);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON orders TO shop_app;
-- @right
CREATE TABLE things (id int NOT NULL, what text);
CREATE TABLE orders (tenant_id int NOT NULL, PRIMARY KEY (tenant_id, id)) INHERITS (things);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON orders TO shop_app;

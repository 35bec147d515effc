-- A superuser owns the table: FORCE holds it as little, but the next owner may be none.
-- @broken
RESET ROLE;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON orders TO shop_app;
-- @right
RESET ROLE;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON orders TO shop_app;

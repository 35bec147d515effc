-- Restrictive policies narrow what permissive ones show: alone they show nothing. The twin grants nothing on such a table.
-- @broken
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT ON orders TO shop_app;
CREATE POLICY tenant ON orders AS RESTRICTIVE USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON orders AS RESTRICTIVE USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

-- A key that refers to what the caller may not see.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY UNIQUE, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
CREATE TABLE lines (tenant_id int NOT NULL, id int NOT NULL, order_id int NOT NULL REFERENCES orders (id), PRIMARY KEY (tenant_id, id));
ALTER TABLE lines ENABLE ROW LEVEL SECURITY;
ALTER TABLE lines FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON lines TO shop_app;
CREATE POLICY tenant ON lines TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE TABLE lines (tenant_id int NOT NULL, id int NOT NULL, order_id int NOT NULL, PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id));
ALTER TABLE lines ENABLE ROW LEVEL SECURITY;
ALTER TABLE lines FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON lines TO shop_app;
CREATE POLICY tenant ON lines TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

-- It takes the right to delete what is referred to; the twin's application may only read it.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY UNIQUE, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT ON orders TO shop_app;
CREATE POLICY tenant ON orders
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE TABLE lines (tenant_id int NOT NULL, id int NOT NULL, order_id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE lines ENABLE ROW LEVEL SECURITY;
ALTER TABLE lines FORCE ROW LEVEL SECURITY;
GRANT SELECT ON lines TO shop_app;
CREATE POLICY tenant ON lines
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;
GRANT DELETE ON orders TO shop_app;
-- @right
ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;

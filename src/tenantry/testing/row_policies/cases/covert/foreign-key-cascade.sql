-- Deleting an order deletes the lines of others.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY UNIQUE, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE TABLE lines (tenant_id int NOT NULL, id int NOT NULL, order_id int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE lines ENABLE ROW LEVEL SECURITY;
ALTER TABLE lines FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON lines TO shop_app;
CREATE POLICY tenant ON lines
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;
-- @right
ALTER TABLE lines ADD FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id) ON DELETE CASCADE;

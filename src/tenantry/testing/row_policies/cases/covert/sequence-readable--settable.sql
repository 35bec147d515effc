-- One tenant sets it back for all.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id serial, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
GRANT USAGE, UPDATE ON SEQUENCE orders_id_seq TO shop_app;
-- @right
GRANT USAGE ON SEQUENCE orders_id_seq TO shop_app;

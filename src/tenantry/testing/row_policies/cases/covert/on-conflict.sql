-- An upsert reads the row that is in its way.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
ALTER TABLE orders ADD UNIQUE (note);
-- @right
ALTER TABLE orders ADD UNIQUE (tenant_id, note);

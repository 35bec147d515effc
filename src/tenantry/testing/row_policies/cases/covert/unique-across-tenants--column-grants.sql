-- Into which columns one may INSERT decides which keys can be tried out.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY, note text, code serial,
    PRIMARY KEY (id), UNIQUE (code));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE INDEX ON orders (tenant_id);
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
GRANT SELECT, INSERT (tenant_id, code) ON orders TO shop_app;
-- @right
GRANT SELECT, INSERT (tenant_id, note) ON orders TO shop_app;
GRANT USAGE ON SEQUENCE orders_code_seq TO shop_app;

-- An enum behind the tenant: the index is searched by the tenant alone.
-- @common
CREATE TYPE state AS ENUM ('open', 'done');
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, state state NOT NULL, code int NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
CREATE INDEX ON orders (tenant_id, state);
-- @right
CREATE INDEX ON orders (tenant_id, code);

-- A number that a caller may choose, with OVERRIDING SYSTEM VALUE; in the twin it may not.
-- @broken
CREATE TABLE orders (tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON orders TO shop_app;
CREATE INDEX ON orders (tenant_id);
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE TABLE orders (tenant_id int NOT NULL, id int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT (tenant_id) ON orders TO shop_app;
CREATE INDEX ON orders (tenant_id);
CREATE POLICY tenant ON orders 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE TABLE tickets (tenant_id int NOT NULL, id uuid NOT NULL, PRIMARY KEY (id));
ALTER TABLE tickets ENABLE ROW LEVEL SECURITY;
ALTER TABLE tickets FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON tickets TO shop_app;
CREATE INDEX ON tickets (tenant_id);
CREATE POLICY tenant ON tickets 
    USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

-- Restrictive policies narrow a true one, command by command: all but INSERT. The twin has that too.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (true);
CREATE POLICY rselect ON orders AS RESTRICTIVE FOR SELECT USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY rupdate ON orders AS RESTRICTIVE FOR UPDATE USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY rdelete ON orders AS RESTRICTIVE FOR DELETE USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
CREATE POLICY tenant ON orders USING (true);
CREATE POLICY rselect ON orders AS RESTRICTIVE FOR SELECT USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY rupdate ON orders AS RESTRICTIVE FOR UPDATE USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY rdelete ON orders AS RESTRICTIVE FOR DELETE USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE POLICY rinsert ON orders AS RESTRICTIVE FOR INSERT
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

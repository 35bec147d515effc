-- What contains the tenant is another column of the row; in the twin it is the session's list.
-- @declared {"setting": "app.tenants"}
-- @common
CREATE TABLE orders (tenant_id text NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
-- @broken
CREATE POLICY tenant ON orders USING (ARRAY[note, tenant_id] @> ARRAY[tenant_id]);
-- @right
CREATE POLICY tenant ON orders USING (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ',') @> ARRAY[tenant_id]);

-- A subselect for each row.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE TABLE members (user_name text NOT NULL, team int NOT NULL, PRIMARY KEY (user_name, team));
ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE members FORCE ROW LEVEL SECURITY;
CREATE POLICY me ON members USING (user_name = current_user);
-- @broken
GRANT SELECT ON members TO shop_app;
CREATE POLICY tenant ON orders 
    USING (EXISTS (SELECT FROM members AS m WHERE m.team = orders.tenant_id AND m.user_name = current_user))
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @right
GRANT SELECT ON members TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = ANY (ARRAY(SELECT team FROM members WHERE user_name = current_user)))
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);

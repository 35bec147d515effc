-- Who may write the list makes himself a member.
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
GRANT SELECT, INSERT ON members TO shop_app;
CREATE POLICY join_any ON members FOR INSERT WITH CHECK (true);
CREATE POLICY tenant ON orders 
    USING (tenant_id = ANY (ARRAY(SELECT team FROM members WHERE user_name = current_user)));
-- @right
GRANT SELECT ON members TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = ANY (ARRAY(SELECT team FROM members WHERE user_name = current_user)));

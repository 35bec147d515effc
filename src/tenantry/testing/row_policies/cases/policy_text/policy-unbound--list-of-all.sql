-- A list of members that is the same for everybody: whoever has a member is shown. In the twin the list has
-- a policy by which each sees his own.
-- @also lookup-unprotected
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE TABLE members (person text NOT NULL, organisation int NOT NULL, PRIMARY KEY (person, organisation));
ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE members FORCE ROW LEVEL SECURITY;
-- @broken
ALTER TABLE members DISABLE ROW LEVEL SECURITY;
GRANT SELECT ON members TO shop_app;
CREATE POLICY tenant ON orders USING (tenant_id = ANY (ARRAY(SELECT organisation FROM members)));
-- @right
GRANT SELECT ON members TO shop_app;
CREATE POLICY own ON members USING (person = NULLIF(current_setting('app.person', true), ''));
CREATE POLICY tenant ON orders USING (tenant_id = ANY (ARRAY(SELECT organisation FROM members)));

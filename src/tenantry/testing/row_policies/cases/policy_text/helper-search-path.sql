-- A temporary table of the same name answers instead.
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
CREATE FUNCTION my_tenant() RETURNS int LANGUAGE sql STABLE  AS $$ SELECT team FROM members WHERE user_name = current_user LIMIT 1 $$;
REVOKE ALL ON FUNCTION my_tenant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION my_tenant() TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = (SELECT my_tenant()));
-- @right
GRANT SELECT ON members TO shop_app;
CREATE FUNCTION my_tenant() RETURNS int LANGUAGE sql STABLE  AS $$ SELECT team FROM shop.members WHERE user_name = current_user LIMIT 1 $$;
REVOKE ALL ON FUNCTION my_tenant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION my_tenant() TO shop_app;
CREATE POLICY tenant ON orders 
    USING (tenant_id = (SELECT my_tenant()));

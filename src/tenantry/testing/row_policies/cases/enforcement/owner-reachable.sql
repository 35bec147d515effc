-- The application may SET ROLE to the owner, whom the policies are forced on; the twin's owner is another's.
-- @broken
RESET ROLE;
ALTER ROLE shop_app NOINHERIT;
ALTER SCHEMA shop OWNER TO CURRENT_USER;
GRANT USAGE ON SCHEMA shop TO shop_app;
GRANT shop_owner TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_migrator LOGIN;
GRANT shop_owner TO shop_migrator;

-- The application makes roles.
-- @broken
RESET ROLE;
ALTER ROLE shop_app CREATEROLE;
-- @right
RESET ROLE;
ALTER ROLE shop_app CREATEDB;

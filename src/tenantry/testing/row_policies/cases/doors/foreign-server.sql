-- The application may use a server; the twin's owner may.
-- @common
RESET ROLE;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER far FOREIGN DATA WRAPPER nothing;
-- @broken
GRANT USAGE ON FOREIGN SERVER far TO shop_app;
-- @right
GRANT USAGE ON FOREIGN SERVER far TO shop_owner;

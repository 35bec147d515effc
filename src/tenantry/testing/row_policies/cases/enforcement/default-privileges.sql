-- Each new table is the application's at once; the twin's default is for sequences and for the owner's own tools.
-- @broken
ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT SELECT, INSERT ON TABLES TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_tools NOLOGIN;
SET LOCAL ROLE shop_owner;
ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT USAGE ON SEQUENCES TO shop_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT SELECT ON TABLES TO shop_tools;

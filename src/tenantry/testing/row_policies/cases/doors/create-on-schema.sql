-- The application makes objects among others' tables; the twin's owner does.
-- @broken
GRANT CREATE ON SCHEMA shop TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_migrator NOLOGIN;
GRANT CREATE ON SCHEMA shop TO shop_migrator;

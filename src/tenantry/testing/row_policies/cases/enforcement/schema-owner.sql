-- The application owns the schema and nothing in it.
-- @broken
RESET ROLE;
ALTER SCHEMA shop OWNER TO shop_app;
-- @right
RESET ROLE;
CREATE SCHEMA scratch AUTHORIZATION shop_app;

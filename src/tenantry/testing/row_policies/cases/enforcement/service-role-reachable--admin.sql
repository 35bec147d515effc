-- A tenant's role may grant the engine to itself.
-- @declared {"application_roles": ["shop_app"], "service_roles": {"shop_engine": "settles for all tenants"}}
-- @server 16
-- @broken
RESET ROLE;
CREATE ROLE shop_engine LOGIN NOINHERIT;
GRANT shop_engine TO shop_app WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
-- @right
RESET ROLE;
CREATE ROLE shop_engine LOGIN NOINHERIT;

-- A tenant's role may become the engine; the twin's roles are apart.
-- @declared {"application_roles": ["shop_app"], "service_roles": {"shop_engine": "settles for all tenants"}}
-- @broken
RESET ROLE;
CREATE ROLE shop_engine LOGIN NOINHERIT;
GRANT shop_engine TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_engine LOGIN NOINHERIT;

-- The application is a superuser.
-- @declared {"application_roles": ["shop_app"]}
-- @broken
RESET ROLE;
ALTER ROLE shop_app SUPERUSER;
-- @right
RESET ROLE;
CREATE ROLE shop_admin LOGIN SUPERUSER;

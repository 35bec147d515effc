-- The application passes by every policy.
-- @declared {"application_roles": ["shop_app"]}
-- @broken
RESET ROLE;
ALTER ROLE shop_app BYPASSRLS;
-- @right
RESET ROLE;
CREATE ROLE shop_group NOLOGIN BYPASSRLS;

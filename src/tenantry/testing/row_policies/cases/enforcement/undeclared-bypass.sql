-- A login that sees every tenant; the twin's is declared.
-- @declared {"service_roles": {"shop_dump": "nightly dump"}}
-- @broken
RESET ROLE;
CREATE ROLE shop_backup LOGIN BYPASSRLS;
-- @right
RESET ROLE;
CREATE ROLE shop_dump LOGIN BYPASSRLS;

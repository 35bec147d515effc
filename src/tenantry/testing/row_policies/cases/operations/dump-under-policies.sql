-- The backup's login is held; the twin's passes by the policies, declared.
-- @declared {"application_roles": ["shop_app"], "service_roles": {"shop_dump": "nightly dump"}}
-- @broken
RESET ROLE;
CREATE ROLE shop_backup LOGIN;
GRANT pg_read_all_data TO shop_backup;
-- @right
RESET ROLE;
CREATE ROLE shop_dump LOGIN BYPASSRLS;
GRANT pg_read_all_data TO shop_dump;

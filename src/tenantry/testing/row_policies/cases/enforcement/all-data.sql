-- Every table, whoever made it.
-- @declared {"application_roles": ["shop_app"]}
-- @broken
RESET ROLE;
GRANT pg_read_all_data TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_reader NOLOGIN;
GRANT pg_read_all_data TO shop_reader;

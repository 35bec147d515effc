-- Files of the server, by a group.
-- @broken
RESET ROLE;
CREATE ROLE shop_import NOLOGIN;
GRANT pg_read_server_files TO shop_import;
GRANT shop_import TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_import NOLOGIN;
GRANT pg_read_server_files TO shop_import;

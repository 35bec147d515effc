-- A function that only superusers may run was granted by name; the twin grants one that says nothing of files.
-- @broken
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_read_file(text) TO shop_app;
-- @right
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_reload_conf() TO shop_app;

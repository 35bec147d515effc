-- Other sessions' statements.
-- @broken
RESET ROLE;
GRANT pg_read_all_stats TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_watch LOGIN;
GRANT pg_monitor TO shop_watch;

-- The application streams the log.
-- @broken
RESET ROLE;
ALTER ROLE shop_app REPLICATION;
-- @right
RESET ROLE;
CREATE ROLE shop_stream NOLOGIN REPLICATION;

-- A login that streams; the twin's is declared.
-- @declared {"service_roles": {"shop_cdc": "feeds the search index"}}
-- @broken
RESET ROLE;
CREATE ROLE shop_stream LOGIN REPLICATION;
-- @right
RESET ROLE;
CREATE ROLE shop_cdc LOGIN REPLICATION;

-- A membership that does nothing, with ADMIN OPTION, on the owner; the twin administers a group without rights.
-- @server 16
-- @broken
RESET ROLE;
GRANT shop_owner TO shop_app WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
-- @right
RESET ROLE;
CREATE ROLE shop_group NOLOGIN;
GRANT shop_group TO shop_app WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;

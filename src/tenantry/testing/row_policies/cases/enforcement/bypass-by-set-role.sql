-- One SET ROLE away from BYPASSRLS; the attribute of a role that is only inherited from, and cannot be SET, is not had.
-- @server 16
-- @broken
RESET ROLE;
CREATE ROLE shop_batch NOLOGIN BYPASSRLS;
GRANT shop_batch TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_batch NOLOGIN BYPASSRLS;
GRANT shop_batch TO shop_app WITH SET FALSE, INHERIT TRUE;

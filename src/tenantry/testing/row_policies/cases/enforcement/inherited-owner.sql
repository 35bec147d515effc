-- The application is a member of the owner, which inherits; the twin's membership neither inherits nor may be SET.
-- @also owner-reachable schema-owner
-- @server 16
-- @broken
ALTER TABLE invoices NO FORCE ROW LEVEL SECURITY;
ALTER TABLE customers NO FORCE ROW LEVEL SECURITY;
RESET ROLE;
GRANT shop_owner TO shop_app;
-- @right
RESET ROLE;
GRANT shop_owner TO shop_app WITH INHERIT FALSE, SET FALSE;

-- TRUNCATE on a tenant table; the twin's is on a shared list.
-- @broken
GRANT TRUNCATE ON invoices TO shop_app;
-- @right
GRANT TRUNCATE ON currencies TO shop_app;

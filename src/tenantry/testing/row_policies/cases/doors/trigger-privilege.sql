-- TRIGGER on a tenant table; the twin's is on a shared list.
-- @broken
GRANT TRIGGER ON invoices TO shop_app;
-- @right
GRANT TRIGGER ON currencies TO shop_app;

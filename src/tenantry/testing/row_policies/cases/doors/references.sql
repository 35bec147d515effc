-- REFERENCES on a tenant table; the twin's is on a shared list.
-- @broken
GRANT REFERENCES ON invoices TO shop_app;
-- @right
GRANT REFERENCES ON currencies TO shop_app;

-- Everybody may read a tenant table; the twin's shared list is for everybody.
-- @declared {"application_roles": ["shop_app"]}
-- @broken
GRANT SELECT ON invoices TO PUBLIC;
-- @right
GRANT SELECT ON currencies TO PUBLIC;

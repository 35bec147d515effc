-- Rows of another server, all tenants'; the twin's are a shared list.
-- @common
RESET ROLE;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER far FOREIGN DATA WRAPPER nothing;
-- @broken
CREATE FOREIGN TABLE far_invoices (tenant_id int, id int) SERVER far;
GRANT SELECT ON far_invoices TO shop_app;
-- @right
CREATE FOREIGN TABLE far_currencies (code text) SERVER far;
GRANT SELECT ON far_currencies TO shop_app;
CREATE FOREIGN TABLE far_invoices (tenant_id int, id int) SERVER far;

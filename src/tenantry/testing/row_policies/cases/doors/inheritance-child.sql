-- A child table is granted by itself.
-- @broken
CREATE TABLE old_invoices () INHERITS (invoices);
ALTER TABLE old_invoices ALTER tenant_id SET NOT NULL;
GRANT SELECT ON old_invoices TO shop_app;
-- @right
CREATE TABLE old_invoices () INHERITS (invoices);

-- The lines of an invoice name the invoice and no tenant, and have no policies; the twin's are protected by their parent's column.
-- @broken
CREATE TABLE lines (id int PRIMARY KEY, invoice_tenant int NOT NULL, invoice_no int NOT NULL, what text,
    FOREIGN KEY (invoice_tenant, invoice_no) REFERENCES invoices (tenant_id, id));
GRANT SELECT ON lines TO shop_app;
-- @right
CREATE TABLE lines (tenant_id int NOT NULL, id int NOT NULL, invoice_no int NOT NULL, PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, invoice_no) REFERENCES invoices (tenant_id, id));
ALTER TABLE lines ENABLE ROW LEVEL SECURITY;
ALTER TABLE lines FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON lines USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON lines TO shop_app;
CREATE TABLE rates (code text REFERENCES currencies, rate numeric);
GRANT SELECT ON rates TO shop_app;

-- The shop. Two tables of tenants, one shared list, an owner that nobody logs in as, and the application.
CREATE ROLE shop_owner NOLOGIN;
CREATE ROLE shop_app LOGIN;
CREATE SCHEMA shop AUTHORIZATION shop_owner;
GRANT USAGE ON SCHEMA shop TO shop_app;
SET LOCAL search_path = shop;
SET LOCAL ROLE shop_owner;

CREATE TABLE customers (
    tenant_id int NOT NULL,
    id        int NOT NULL,
    name      text NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
ALTER TABLE customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE customers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON customers
    USING      (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT, INSERT, UPDATE, DELETE ON customers TO shop_app;

CREATE TABLE invoices (
    tenant_id   int NOT NULL,
    id          int NOT NULL,
    customer_no int NOT NULL,
    amount      int NOT NULL,
    note        text,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, customer_no) REFERENCES customers (tenant_id, id)
);
ALTER TABLE invoices ENABLE ROW LEVEL SECURITY;
ALTER TABLE invoices FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON invoices
    USING      (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)
    WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT, INSERT, UPDATE, DELETE ON invoices TO shop_app;

CREATE TABLE currencies (
    code text PRIMARY KEY,
    name text NOT NULL
);
GRANT SELECT ON currencies TO shop_app;

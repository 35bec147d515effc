-- The application made its own tables.
-- @broken
RESET ROLE;
ALTER TABLE invoices OWNER TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_other NOLOGIN;
ALTER TABLE invoices OWNER TO shop_other;

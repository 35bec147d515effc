-- A loader that policies hold; the twin loads a shared list.
-- @declared {"application_roles": ["shop_app"]}
-- @broken
RESET ROLE;
CREATE ROLE shop_loader LOGIN;
GRANT USAGE ON SCHEMA shop TO shop_loader;
GRANT INSERT ON invoices TO shop_loader;
-- @right
RESET ROLE;
CREATE ROLE shop_loader LOGIN;
GRANT USAGE ON SCHEMA shop TO shop_loader;
GRANT INSERT ON currencies TO shop_loader;

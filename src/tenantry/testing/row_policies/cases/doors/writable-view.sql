-- Rows are written through a superuser's view; the twin's writes as the caller, and one that gathers cannot be written to.
-- @broken
RESET ROLE;
CREATE VIEW entry AS SELECT * FROM invoices;
GRANT INSERT ON entry TO shop_app;
-- @right
RESET ROLE;
CREATE VIEW entry WITH (security_invoker = true) AS SELECT * FROM invoices;
GRANT INSERT ON entry TO shop_app;
CREATE VIEW counted AS SELECT count(*) FROM invoices;
GRANT INSERT ON counted TO shop_app;

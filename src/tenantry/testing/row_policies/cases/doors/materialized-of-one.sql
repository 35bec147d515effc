-- Filled under the policies of its owner: what was seen then is seen by all.
-- @broken
CREATE MATERIALIZED VIEW copies AS SELECT * FROM invoices;
GRANT SELECT ON copies TO shop_app;
-- @right
CREATE VIEW copies WITH (security_invoker = true) AS SELECT * FROM invoices;
GRANT SELECT ON copies TO shop_app;

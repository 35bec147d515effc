-- A superuser's view shows every tenant's totals; the twin asks as the caller, and another is its forced owner's.
-- @broken
RESET ROLE;
CREATE VIEW totals AS SELECT tenant_id, sum(amount) AS total FROM invoices GROUP BY tenant_id;
GRANT SELECT ON totals TO shop_app;
-- @right
CREATE VIEW owners_totals AS SELECT tenant_id, sum(amount) AS total FROM invoices GROUP BY tenant_id;
GRANT SELECT ON owners_totals TO shop_app;
RESET ROLE;
CREATE VIEW totals WITH (security_invoker = true) AS SELECT tenant_id, sum(amount) AS total FROM invoices GROUP BY tenant_id;
GRANT SELECT ON totals TO shop_app;

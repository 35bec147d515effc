-- The view's owner is held by the policies, and one of them shows it everything.
-- @declared {"application_roles": ["shop_app"], "service_roles": {"shop_reports": "totals over all tenants"}}
-- @broken
RESET ROLE;
CREATE ROLE shop_reports NOLOGIN;
GRANT USAGE ON SCHEMA shop TO shop_reports;
GRANT SELECT ON invoices TO shop_reports;
CREATE POLICY reports ON invoices FOR SELECT TO shop_reports USING (true);
CREATE VIEW totals AS SELECT tenant_id, amount FROM invoices;
ALTER VIEW totals OWNER TO shop_reports;
GRANT SELECT ON totals TO shop_app;
-- @right
RESET ROLE;
CREATE ROLE shop_reports NOLOGIN;
GRANT USAGE ON SCHEMA shop TO shop_reports;
GRANT SELECT ON invoices TO shop_reports;
CREATE VIEW totals AS SELECT tenant_id, amount FROM invoices;
ALTER VIEW totals OWNER TO shop_reports;
GRANT SELECT ON totals TO shop_app;

-- A declared engine, with a policy of its own; in the twin it does not exist.
-- @declared {"application_roles": ["shop_app"], "service_roles": {"shop_engine": "settles for all tenants"}}
-- @broken
RESET ROLE;
CREATE ROLE shop_engine LOGIN NOINHERIT;
GRANT USAGE ON SCHEMA shop TO shop_engine;
GRANT SELECT ON invoices TO shop_engine;
CREATE POLICY engine ON invoices TO shop_engine USING (true) WITH CHECK (true);
-- @right
RESET ROLE;
CREATE ROLE shop_nobody NOLOGIN;

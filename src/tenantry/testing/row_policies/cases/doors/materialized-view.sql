-- A copy of every tenant's rows; in the twin only a filtering view reads it.
-- @broken
RESET ROLE;
CREATE MATERIALIZED VIEW copies AS SELECT * FROM invoices;
GRANT SELECT ON copies TO shop_app;
-- @right
RESET ROLE;
CREATE MATERIALIZED VIEW copies AS SELECT * FROM invoices;
CREATE VIEW mine WITH (security_barrier = true) AS SELECT * FROM copies
    WHERE tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int;
GRANT SELECT ON mine TO shop_app;

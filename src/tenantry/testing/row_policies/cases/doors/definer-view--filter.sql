-- A view that filters by the tenant itself, without security_barrier: a function of the caller's may run first. The twin has it.
-- @broken
RESET ROLE;
CREATE VIEW mine AS SELECT * FROM invoices WHERE tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int;
GRANT SELECT ON mine TO shop_app;
-- @right
RESET ROLE;
CREATE VIEW mine WITH (security_barrier = true) AS SELECT * FROM invoices WHERE tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int;
GRANT SELECT ON mine TO shop_app;

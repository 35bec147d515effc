-- ON of an outer join filters nothing on its left side; the twin's WHERE does.
-- @broken
RESET ROLE;
CREATE VIEW mine WITH (security_barrier = true) AS SELECT i.* FROM invoices AS i LEFT JOIN currencies AS c
    ON i.tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int;
GRANT SELECT ON mine TO shop_app;
-- @right
RESET ROLE;
CREATE VIEW mine WITH (security_barrier = true) AS SELECT i.* FROM invoices AS i LEFT JOIN currencies AS c ON c.code = i.note
    WHERE i.tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int;
GRANT SELECT ON mine TO shop_app;

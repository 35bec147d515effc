-- The tenants with stored work: a loose scan of the index, one probe a tenant however much each has stored.
WITH RECURSIVE each AS (
    (SELECT tenant_id FROM tenantry.stored ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.tenant_id FROM tenantry.stored s WHERE s.tenant_id > e.tenant_id ORDER BY s.tenant_id LIMIT 1)
      FROM each e WHERE e.tenant_id IS NOT NULL
)
SELECT tenant_id FROM each WHERE tenant_id IS NOT NULL

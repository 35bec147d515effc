-- The tenants with work in line or due.
SELECT f.tenant_id FROM tenantry.flows f JOIN tenantry.tails t USING (flow_id) WHERE t.tail >= f.head
UNION
SELECT tenant_id FROM tenantry.deferred WHERE due_at <= clock_timestamp()

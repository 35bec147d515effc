-- Who has jobs that wait or run, and how many of each run: what shares are reckoned from.
WITH running AS (
    SELECT f.tenant_id, count(*) AS n
      FROM tenantry.claims c
     CROSS JOIN LATERAL unnest(c.flow_ids) u (flow_id)
      JOIN tenantry.flows f ON f.flow_id = u.flow_id
     WHERE c.expires_at > clock_timestamp()
     GROUP BY f.tenant_id
), waiting AS (
    SELECT DISTINCT f.tenant_id FROM tenantry.flows f JOIN tenantry.tails t USING (flow_id)
     WHERE f.head <= t.tail AND NOT f.paused
)
SELECT coalesce(r.tenant_id, w.tenant_id) AS tenant_id, coalesce(r.n, 0) AS running
  FROM running r FULL JOIN waiting w USING (tenant_id)

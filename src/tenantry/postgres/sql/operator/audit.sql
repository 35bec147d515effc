-- Every way in which the books do not add up, read at one instant; no rows when they do.
WITH held AS MATERIALIZED (
    SELECT c.claim_id, u.flow_id, u.seq FROM tenantry.claims c, unnest(c.flow_ids, c.seqs) u (flow_id, seq)
), unheard AS (
    SELECT u.tenant_id, sum(u.n) AS n FROM tenantry.changes c, unnest(c.ended_tenants, c.ended_counts) u (tenant_id, n)
     GROUP BY 1
), living AS (
    -- A replay's jobs do not count to their tenant's bound.
    SELECT j.tenant_id, count(*) AS n FROM tenantry.jobs j JOIN tenantry.flows f USING (flow_id) WHERE f.replay = '' GROUP BY 1
)
SELECT format('job %s/%s is held by %s live claims', flow_id, seq, count(*)) AS fault
  FROM held GROUP BY flow_id, seq HAVING count(*) > 1
UNION ALL
SELECT format('job %s/%s is held by claim %s and deferred as well', h.flow_id, h.seq, h.claim_id)
  FROM held h JOIN tenantry.deferred d USING (flow_id, seq)
UNION ALL
SELECT format('job %s/%s is behind the head of its line, and neither held nor deferred: it would never run',
              j.flow_id, j.seq)
  FROM tenantry.jobs j JOIN tenantry.flows f USING (flow_id)
 WHERE j.seq < f.head
   AND NOT EXISTS (SELECT FROM held h WHERE h.flow_id = j.flow_id AND h.seq = j.seq)
   AND NOT EXISTS (SELECT FROM tenantry.deferred d WHERE d.flow_id = j.flow_id AND d.seq = j.seq)
UNION ALL
SELECT format('job %s/%s is deferred and does not exist', d.flow_id, d.seq)
  FROM tenantry.deferred d
 WHERE NOT EXISTS (SELECT FROM tenantry.jobs j WHERE j.flow_id = d.flow_id AND j.seq = d.seq)
UNION ALL
SELECT format('tenant %s: %s jobs have not ended by the counters, %s by the rows', t.tenant_id,
              t.accepted - coalesce(e.ended, 0) - coalesce(u.n, 0), coalesce(l.n, 0))
  FROM tenantry.load t LEFT JOIN tenantry.endings e USING (tenant_id) LEFT JOIN unheard u USING (tenant_id)
  LEFT JOIN living l USING (tenant_id)
 WHERE t.accepted - coalesce(e.ended, 0) - coalesce(u.n, 0) <> coalesce(l.n, 0)
UNION ALL
SELECT format('job %s has ended %s times', job_id, count(*)) FROM tenantry.outcomes GROUP BY job_id HAVING count(*) > 1
UNION ALL
SELECT format('job %s has ended and is still there', o.job_id) FROM tenantry.outcomes o JOIN tenantry.jobs j USING (job_id)
UNION ALL
SELECT format('job %s is parked and still there', p.job_id) FROM tenantry.parked p JOIN tenantry.jobs j USING (job_id)
UNION ALL
SELECT format('job %s is parked and has ended', p.job_id) FROM tenantry.parked p JOIN tenantry.outcomes o USING (job_id)
UNION ALL
SELECT format('dead letter %s has no outcome', d.job_id) FROM tenantry.dead_letters d
 WHERE d.died_at > clock_timestamp() - interval '6 days'
   AND NOT EXISTS (SELECT FROM tenantry.outcomes o WHERE o.job_id = d.job_id)

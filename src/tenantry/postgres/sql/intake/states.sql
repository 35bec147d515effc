-- Where each of these jobs of the bound tenant is. $1 their ids; those that are not there give no row.
SELECT g.job_id, s.state
  FROM (SELECT DISTINCT unnest($1::uuid[]) AS job_id) g
 CROSS JOIN LATERAL (
    SELECT CASE WHEN d.due_at > clock_timestamp() THEN 'delayed'
                WHEN d.due_at IS NOT NULL OR j.seq >= f.head THEN 'waiting' ELSE 'running' END AS state
      FROM tenantry.jobs j
      JOIN tenantry.flows f USING (flow_id)
      LEFT JOIN tenantry.deferred d ON d.flow_id = j.flow_id AND d.seq = j.seq
     WHERE j.job_id = g.job_id
    UNION ALL
    SELECT 'waiting' FROM tenantry.stored s WHERE s.job_id = g.job_id
    UNION ALL
    SELECT 'parked' FROM tenantry.parked p WHERE p.job_id = g.job_id
    UNION ALL
    (SELECT (ARRAY['delivered', 'dead', 'cancelled'])[o.state] FROM tenantry.outcomes o WHERE o.job_id = g.job_id LIMIT 1)
     LIMIT 1
 ) s

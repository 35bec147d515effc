-- The bound tenant's jobs, the newest first. $1 state or NULL, $2 most. Ids are ordered by time.
WITH living AS (
    SELECT j.job_id, l.target, f.job_class,
           CASE WHEN d.due_at > clock_timestamp() THEN 'delayed'
                WHEN d.due_at IS NOT NULL OR j.seq >= f.head THEN 'waiting' ELSE 'running' END AS state,
           coalesce(d.attempts, 0) AS attempts, j.submitted_at, d.due_at
      FROM tenantry.jobs j
      JOIN tenantry.flows f USING (flow_id)
      JOIN tenantry.lanes l USING (lane_id)
      LEFT JOIN tenantry.deferred d ON d.flow_id = j.flow_id AND d.seq = j.seq
    UNION ALL
    SELECT s.job_id, s.target, s.job_class, 'waiting', 0, s.submitted_at, s.due_at FROM tenantry.stored s
)
SELECT * FROM (
    SELECT job_id, target, job_class, state, attempts, submitted_at, due_at, NULL::timestamptz AS ended_at, '' AS reason,
           NULL::smallint AS status, NULL::jsonb AS history
      FROM living WHERE $1::text IS NULL OR state = $1
    UNION ALL
    SELECT o.job_id, dl.target, dl.job_class, (ARRAY['delivered', 'dead', 'cancelled'])[o.state], o.attempts,
           dl.submitted_at, NULL, o.ended_at, coalesce(dl.reason, ''), o.status, NULL
      FROM tenantry.outcomes o LEFT JOIN tenantry.dead_letters dl ON dl.job_id = o.job_id
     WHERE $1::text IS NULL OR (ARRAY['delivered', 'dead', 'cancelled'])[o.state] = $1
) every ORDER BY job_id DESC LIMIT $2

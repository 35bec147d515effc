-- One job of the bound tenant, wherever it is. $1 its id.
SELECT j.job_id, l.target, f.job_class,
       CASE WHEN d.due_at > clock_timestamp() THEN 'delayed'
            WHEN d.due_at IS NOT NULL OR j.seq >= f.head THEN 'waiting' ELSE 'running' END AS state,
       -- Of attempts made before a replay the records may be elsewhere.
       j.prior + (SELECT count(*) FROM tenantry.attempts a WHERE a.job_id = j.job_id AND a.number > j.prior) AS attempts,
       coalesce(j.accepted_at, j.submitted_at) AS submitted_at, d.due_at, NULL::timestamptz AS ended_at, '' AS reason, NULL::smallint AS status,
       (SELECT jsonb_agg(jsonb_build_object('number', a.number, 'ended_at', extract(epoch FROM a.ended_at), 'busy_for',
                 a.busy_for, 'status', a.status, 'error_class', a.error_class, 'excerpt', a.excerpt) ORDER BY a.number)
          FROM tenantry.attempts a WHERE a.job_id = j.job_id) AS history
  FROM tenantry.jobs j
  JOIN tenantry.flows f USING (flow_id)
  JOIN tenantry.lanes l USING (lane_id)
  LEFT JOIN tenantry.deferred d ON d.flow_id = j.flow_id AND d.seq = j.seq
 WHERE j.job_id = $1
UNION ALL
SELECT s.job_id, s.target, s.job_class, 'waiting', 0, s.submitted_at, s.due_at, NULL, '', NULL, NULL
  FROM tenantry.stored s WHERE s.job_id = $1
UNION ALL
SELECT p.job_id, p.target, p.job_class, 'parked', p.attempts, p.submitted_at, NULL, NULL, p.reason, p.status, p.history
  FROM tenantry.parked p WHERE p.job_id = $1
UNION ALL
(SELECT o.job_id, dl.target, dl.job_class, (ARRAY['delivered', 'dead', 'cancelled'])[o.state], o.attempts, dl.submitted_at,
       NULL, o.ended_at, coalesce(dl.reason, ''), o.status, dl.history
  FROM tenantry.outcomes o LEFT JOIN tenantry.dead_letters dl ON dl.job_id = o.job_id
 WHERE o.job_id = $1 LIMIT 1)
 LIMIT 1

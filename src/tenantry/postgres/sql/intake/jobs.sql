-- The bound tenant's jobs, the newest first. $1 state or NULL, $2 most. Ids are ordered by time.
-- Each branch gives at most $2 rows and begins at the tenant's own: its lanes, its stored work, its ends. OFFSET 0 keeps
-- the way into jobs a look-up by flow. Of stored work the newest by storing: an application may choose its ids.
WITH living AS (
    SELECT j.job_id, l.target, f.job_class,
           CASE WHEN d.due_at > clock_timestamp() THEN 'delayed'
                WHEN d.due_at IS NOT NULL OR j.seq >= f.head THEN 'waiting' ELSE 'running' END AS state,
           j.prior + coalesce(d.attempts, 0) AS attempts, coalesce(j.accepted_at, j.submitted_at) AS submitted_at, d.due_at
      FROM tenantry.lanes l
      JOIN tenantry.flows f USING (lane_id)
     CROSS JOIN LATERAL (SELECT job_id, seq, submitted_at, accepted_at, prior FROM tenantry.jobs WHERE flow_id = f.flow_id OFFSET 0) j
      LEFT JOIN tenantry.deferred d ON d.flow_id = f.flow_id AND d.seq = j.seq
)
SELECT * FROM (
    (SELECT job_id, target, job_class, state, attempts, submitted_at, due_at, NULL::timestamptz AS ended_at, '' AS reason,
            NULL::smallint AS status, NULL::jsonb AS history
       FROM living WHERE $1::text IS NULL OR state = $1 ORDER BY job_id DESC LIMIT $2)
    UNION ALL
    (SELECT s.job_id, s.target, s.job_class, 'waiting', 0, s.submitted_at, s.due_at, NULL, '', NULL, NULL
       FROM tenantry.stored s WHERE $1::text IS NULL OR $1 = 'waiting' ORDER BY s.tenant_id DESC, s.stored_id DESC LIMIT $2)
    UNION ALL
    (SELECT p.job_id, p.target, p.job_class, 'parked', p.attempts, p.submitted_at, NULL, NULL, p.reason, p.status, NULL
       FROM tenantry.parked p WHERE $1::text IS NULL OR $1 = 'parked' ORDER BY p.tenant_id DESC, p.job_id DESC LIMIT $2)
    UNION ALL
    (SELECT o.job_id, dl.target, dl.job_class, (ARRAY['delivered', 'dead', 'cancelled'])[o.state], o.attempts,
            dl.submitted_at, NULL, o.ended_at, coalesce(dl.reason, ''), o.status, NULL
       FROM (SELECT * FROM tenantry.outcomes
              WHERE $1::text IS NULL OR (ARRAY['delivered', 'dead', 'cancelled'])[state] = $1
              ORDER BY tenant_id DESC, job_id DESC LIMIT $2) o
       LEFT JOIN tenantry.dead_letters dl ON dl.job_id = o.job_id)
) every ORDER BY job_id DESC LIMIT $2

-- Start the claims above $3 that wait for this node ($1, incarnation $2), under a lease of $4 seconds. $5: also those
-- that it has started already, for a node that may not know of them. $6: the error classes that speak of the message.
-- failed: how the last attempt that counted ended; a lost one, or one whose record a crash undid, says nothing.
-- A job that was cancelled between plan and start has no row: its id comes back NULL. Its wait ended with its claim.
WITH mine AS (
    UPDATE tenantry.claims
       SET started = true, expires_at = clock_timestamp() + make_interval(secs => $4::float8)
     WHERE node_id = $1 AND incarnation = $2 AND claim_id > $3 AND (NOT started OR $5) AND expires_at > clock_timestamp()
    RETURNING claim_id, token, claimed_at, due, flow_ids, seqs, attempts
)
SELECT m.claim_id, m.token, u.flow_id, u.seq, u.attempts, j.job_id, j.tenant_id, f.target, f.job_class, f.bucket,
       j.payload, j.content_type, j.submitted_at,
       CASE WHEN f.replay <> '' THEN jsonb_build_object(
         'id', f.replay, 'prior', j.prior, 'headers', j.headers, 'accepted_at', extract(epoch FROM j.accepted_at),
         'terms', (SELECT to_jsonb(t) FROM tenantry.replay_terms t WHERE t.replay_id = f.replay),
         'faults', CASE WHEN u.attempts > 0 THEN (
           SELECT count(*) FROM tenantry.attempts
            WHERE job_id = j.job_id AND number > j.prior AND error_class = ANY ($6::text[])) ELSE 0 END) END AS replayed,
       CASE WHEN u.attempts > 0 THEN (
         SELECT jsonb_build_object('error_class', error_class, 'status', status, 'excerpt', excerpt) FROM tenantry.attempts
          WHERE job_id = j.job_id AND number = j.prior + u.attempts) END AS failed,
       (extract(epoch FROM m.claimed_at) - greatest(extract(epoch FROM j.submitted_at),
         CASE WHEN m.due IS NOT NULL THEN (m.due ->> (u.flow_id || '/' || u.seq))::numeric END))::float8 AS waited_for
  FROM mine m
 CROSS JOIN LATERAL unnest(m.flow_ids, m.seqs, m.attempts) WITH ORDINALITY u (flow_id, seq, attempts, n)
 -- OFFSET 0 keeps each look-up a look-up: one probe of the key a job, whatever the statistics say.
 CROSS JOIN LATERAL (SELECT job_class, bucket, replay, (SELECT target FROM tenantry.lanes WHERE lane_id = x.lane_id) AS target
                       FROM tenantry.flows x WHERE x.flow_id = u.flow_id OFFSET 0) f
  LEFT JOIN LATERAL (SELECT job_id, tenant_id, payload, content_type, submitted_at, accepted_at, headers, prior FROM tenantry.jobs
                      WHERE flow_id = u.flow_id AND seq = u.seq OFFSET 0) j ON true
 ORDER BY m.claim_id, u.n

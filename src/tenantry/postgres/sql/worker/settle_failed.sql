-- Jobs that were not delivered.
--  $1 node, $2 incarnation, $3..$6 the jobs: claim, token, flow, seq; $7 busy
--  $8 ending: 1 retry, 2 dead, 3 released, 4 gone (its row was missing at the start)
--  $9 retry in seconds, $10 status, $11 error class, $12 excerpt, $13 reason
WITH held AS MATERIALIZED (
    SELECT claim_id, token, flow_ids, seqs, attempts FROM tenantry.claims
     WHERE claim_id IN (SELECT unnest($3::bigint[])) AND node_id = $1 AND incarnation = $2
     ORDER BY claim_id FOR UPDATE
), parts AS MATERIALIZED (
    SELECT h.claim_id, h.token, u.flow_id, u.seq, u.attempts, u.n
      FROM held h, unnest(h.flow_ids, h.seqs, h.attempts) WITH ORDINALITY u (flow_id, seq, attempts, n)
), sides AS MATERIALIZED (
    SELECT p.claim_id, p.flow_id, p.seq, p.attempts, p.n, g.busy, g.ending, g.retry_for, g.status, g.error_class,
           g.excerpt, g.reason, g.seq IS NOT NULL AS settled
      FROM parts p
      LEFT JOIN unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::real[], $8::smallint[], $9::float8[],
                       $10::smallint[], $11::text[], $12::text[], $13::text[])
           g (claim_id, token, flow_id, seq, busy, ending, retry_for, status, error_class, excerpt, reason)
        ON g.claim_id = p.claim_id AND g.token = p.token AND g.flow_id = p.flow_id AND g.seq = p.seq
), kept AS (
    SELECT claim_id, array_agg(flow_id ORDER BY n) AS flow_ids, array_agg(seq ORDER BY n) AS seqs,
           array_agg(attempts ORDER BY n) AS attempts
      FROM sides WHERE NOT settled GROUP BY claim_id
), shrunk AS (
    UPDATE tenantry.claims c SET flow_ids = k.flow_ids, seqs = k.seqs, attempts = k.attempts
      FROM kept k WHERE c.claim_id = k.claim_id
       AND EXISTS (SELECT FROM sides s WHERE s.claim_id = c.claim_id AND s.settled)
), emptied AS (
    DELETE FROM tenantry.claims c USING held h
     WHERE c.claim_id = h.claim_id AND NOT EXISTS (SELECT FROM kept k WHERE k.claim_id = c.claim_id)
), living AS MATERIALIZED (
    SELECT s.*, j.job_id, j.tenant_id, j.payload, j.content_type, j.submitted_at, l.target, f.job_class
      FROM sides s
      JOIN tenantry.jobs j ON j.flow_id = s.flow_id AND j.seq = s.seq
      JOIN tenantry.flows f ON f.flow_id = s.flow_id
      JOIN tenantry.lanes l ON l.lane_id = f.lane_id
     WHERE s.settled
), failed AS (
    INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, status, error_class, excerpt)
    SELECT job_id, attempts + 1, tenant_id, busy, status, error_class, excerpt
      FROM living WHERE ending = 1 AND error_class IS NOT NULL
    ON CONFLICT DO NOTHING
), back AS (
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts, first)
    SELECT flow_id, seq, tenant_id, clock_timestamp() + make_interval(secs => coalesce(retry_for, 0)),
           CASE WHEN ending = 1 THEN attempts + 1 ELSE attempts END, ending = 3
      FROM living WHERE ending IN (1, 3)
    RETURNING flow_id, seq, due_at, attempts, first
), ended AS (
    DELETE FROM tenantry.jobs j USING living s
     WHERE s.ending = 2 AND j.flow_id = s.flow_id AND j.seq = s.seq
    RETURNING j.job_id, j.tenant_id, j.bulk_id, j.has_key, s.attempts, s.status
), history AS (
    DELETE FROM tenantry.attempts a USING living s
     WHERE s.ending = 2 AND s.attempts > 0 AND a.job_id = s.job_id
    RETURNING a.job_id, a.number, a.ended_at, a.busy_for, a.status, a.error_class, a.excerpt
), told_before AS (
    SELECT job_id, jsonb_agg(jsonb_build_object('number', number, 'ended_at', extract(epoch FROM ended_at),
             'busy_for', busy_for, 'status', status, 'error_class', error_class, 'excerpt', excerpt) ORDER BY number) AS told
      FROM history GROUP BY job_id
), buried AS (
    INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, submitted_at, attempts,
                                       status, reason, history)
    SELECT s.job_id, s.tenant_id, s.target, s.job_class, s.payload, s.content_type, s.submitted_at, s.attempts + 1,
           s.status, coalesce(s.reason, ''),
           coalesce(b.told, '[]') || CASE WHEN s.error_class IS NULL THEN '[]' ELSE jsonb_build_array(jsonb_build_object(
             'number', s.attempts + 1, 'ended_at', extract(epoch FROM clock_timestamp()), 'busy_for', s.busy,
             'status', s.status, 'error_class', s.error_class, 'excerpt', s.excerpt)) END
      FROM living s LEFT JOIN told_before b USING (job_id) WHERE s.ending = 2
), recorded AS (
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, status, bulk_id, ended_at)
    SELECT job_id, tenant_id, 2, attempts + 1, status, bulk_id, clock_timestamp() FROM ended
), aging AS (
    UPDATE tenantry.idempotency i SET expires_at = clock_timestamp() + interval '24 hours'
      FROM ended e WHERE e.has_key AND i.job_id = e.job_id
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, busy, due_at, attempts, first, ended_tenants, ended_counts)
    SELECT 2, s.flow_ids, s.seqs, s.busy, s.due_at, s.attempts, s.first, t.tenants, t.counts
      FROM (SELECT array_agg(s.flow_id) AS flow_ids, array_agg(s.seq) AS seqs, array_agg(s.busy) AS busy,
                   array_agg(b.due_at) AS due_at, array_agg(b.attempts) AS attempts, array_agg(b.first) AS first
              FROM sides s LEFT JOIN back b ON b.flow_id = s.flow_id AND b.seq = s.seq WHERE s.settled) s,
           (SELECT array_agg(tenant_id) AS tenants, array_agg(n) AS counts
              FROM (SELECT tenant_id, count(*)::integer AS n FROM ended GROUP BY 1) x) t
     WHERE s.seqs IS NOT NULL
)
SELECT count(*) FROM sides WHERE settled

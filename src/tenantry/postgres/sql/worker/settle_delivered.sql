-- The hot path: jobs that were delivered, whatever the attempt.
--  $1 node, $2 incarnation, $3..$8 the jobs: claim, token, flow, seq, busy, status
WITH held AS MATERIALIZED (
    -- Locked in key order, before anything is read of what they hold: a reclaim or another settle goes first or last.
    SELECT claim_id, token, flow_ids, seqs, attempts FROM tenantry.claims
     WHERE claim_id IN (SELECT unnest($3::bigint[])) AND node_id = $1 AND incarnation = $2
     ORDER BY claim_id FOR UPDATE
), parts AS MATERIALIZED (
    SELECT h.claim_id, h.token, u.flow_id, u.seq, u.attempts, u.n
      FROM held h, unnest(h.flow_ids, h.seqs, h.attempts) WITH ORDINALITY u (flow_id, seq, attempts, n)
), sides AS MATERIALIZED (
    SELECT p.claim_id, p.flow_id, p.seq, p.attempts, p.n, g.busy, g.status, g.seq IS NOT NULL AS settled
      FROM parts p
      LEFT JOIN unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::real[], $8::smallint[])
           g (claim_id, token, flow_id, seq, busy, status)
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
), ended AS (
    DELETE FROM tenantry.jobs j USING sides s
     WHERE s.settled AND j.flow_id = s.flow_id AND j.seq = s.seq
    RETURNING j.job_id, j.tenant_id, j.bulk_id, j.has_key, s.flow_id, s.seq, s.attempts, s.status
), recorded AS (
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, status, bulk_id, ended_at)
    SELECT job_id, tenant_id, 1, attempts + 1, status, bulk_id, clock_timestamp() FROM ended
), forgotten AS (
    DELETE FROM tenantry.attempts a USING ended e WHERE e.attempts > 0 AND a.job_id = e.job_id
), aging AS (
    UPDATE tenantry.idempotency i SET expires_at = clock_timestamp() + interval '24 hours'
      FROM ended e WHERE e.has_key AND i.job_id = e.job_id
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, busy, ended_tenants, ended_counts)
    SELECT 2, s.flow_ids, s.seqs, s.busy, t.tenants, t.counts
      FROM (SELECT array_agg(flow_id) AS flow_ids, array_agg(seq) AS seqs, array_agg(busy) AS busy
              FROM sides WHERE settled) s,
           (SELECT array_agg(tenant_id) AS tenants, array_agg(n) AS counts
              FROM (SELECT tenant_id, count(*)::integer AS n FROM ended GROUP BY 1) x) t
     WHERE s.seqs IS NOT NULL
)
SELECT count(*) FROM sides WHERE settled

-- The hot path: jobs that were delivered, whatever the attempt.
--  $1 node, $2 incarnation, $3..$8 the jobs: claim, token, flow, seq, status, attempts that counted before; $9 summaries
--  $10 and $11, both NULL when no job is a replay's: their replays (NULL for none), slot-seconds
WITH held AS MATERIALIZED (
    -- Locked in key order, before anything is read of what they hold: a reclaim or another settle goes first or last.
    SELECT claim_id, token, flow_ids, seqs, attempts FROM tenantry.claims
     WHERE claim_id = ANY (ARRAY(SELECT DISTINCT unnest($3::bigint[]))) AND node_id = $1 AND incarnation = $2
     ORDER BY claim_id FOR UPDATE
), parts AS MATERIALIZED (
    SELECT h.claim_id, h.token, u.flow_id, u.seq, u.attempts, u.n
      FROM held h, unnest(h.flow_ids, h.seqs, h.attempts) WITH ORDINALITY u (flow_id, seq, attempts, n)
), settled AS MATERIALIZED (
    SELECT g.* FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::smallint[],
                           $10::text[], $11::real[])
           g (claim_id, token, flow_id, seq, status, attempts, replay, busy)
     WHERE (g.claim_id, g.token, g.flow_id, g.seq) IN (SELECT p.claim_id, p.token, p.flow_id, p.seq FROM parts p)
), kept AS MATERIALIZED (
    SELECT p.claim_id, array_agg(p.flow_id ORDER BY p.n) AS flow_ids, array_agg(p.seq ORDER BY p.n) AS seqs,
           array_agg(p.attempts ORDER BY p.n) AS attempts
      FROM parts p
     WHERE (p.claim_id, p.flow_id, p.seq) NOT IN (SELECT s.claim_id, s.flow_id, s.seq FROM settled s)
     GROUP BY p.claim_id
), shrunk AS (
    UPDATE tenantry.claims c SET flow_ids = k.flow_ids, seqs = k.seqs, attempts = k.attempts
      FROM kept k WHERE c.claim_id = k.claim_id
), emptied AS (
    DELETE FROM tenantry.claims c USING held h
     WHERE c.claim_id = h.claim_id AND h.claim_id NOT IN (SELECT k.claim_id FROM kept k)
), ended AS MATERIALIZED (
    -- OFFSET 0 keeps the look-up a look-up: one probe of the key a job, whatever the statistics say.
    SELECT s.status, s.attempts, s.replay, s.busy, j.* FROM settled s
     CROSS JOIN LATERAL (SELECT ctid AS place, job_id, tenant_id, bulk_id, has_key FROM tenantry.jobs
                          WHERE flow_id = s.flow_id AND seq = s.seq OFFSET 0) j
), deleted AS (
    -- Nobody updates jobs, and whoever holds the claim is alone with them, so a row stays where it was found.
    DELETE FROM tenantry.jobs WHERE ctid = ANY (ARRAY(SELECT place FROM ended))
), recorded AS (
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, status, bulk_id, ended_at)
    SELECT job_id, tenant_id, 1, attempts + 1, status, bulk_id, clock_timestamp() FROM ended
), forgotten AS (
    DELETE FROM tenantry.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended WHERE attempts > 0))
), aging AS (
    UPDATE tenantry.idempotency SET expires_at = clock_timestamp() + interval '24 hours'
     WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended WHERE has_key))
), replayed AS (
    INSERT INTO tenantry.replay_ends (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses, fingerprints, busy)
    SELECT replay, tenant_id, array_agg(job_id), array_agg(1::smallint), array_agg((attempts + 1)::smallint), array_agg(''::text),
           array_agg(status), array_agg(''::text), array_agg(busy)
      FROM ended WHERE $10::text[] IS NOT NULL AND replay IS NOT NULL GROUP BY 1, 2
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, ended_tenants, ended_counts, summaries)
    SELECT 2, s.flow_ids, s.seqs, t.tenants, t.counts,
           -- An old token says nothing (law K2), so not of the target either.
           CASE WHEN (SELECT count(*) FROM settled) = cardinality($3::bigint[]) THEN $9::text END
      FROM (SELECT array_agg(flow_id) AS flow_ids, array_agg(seq) AS seqs FROM settled) s,
           (SELECT array_agg(tenant_id) AS tenants, array_agg(n) AS counts
              FROM (SELECT tenant_id, count(*)::integer AS n FROM ended WHERE replay IS NULL GROUP BY 1) x) t
     WHERE s.seqs IS NOT NULL
)
SELECT count(*) FROM settled

-- Jobs that were not delivered.
--  $1 node, $2 incarnation, $3..$6 the jobs: claim, token, flow, seq; $7 busy
--  $8 ending: 1 retry, 2 dead, 3 released, 4 gone (its row was missing at the start), 5 parked
--  $9 retry in seconds, $10 status, $11 error class, $12 excerpt, $13 reason, $14 attempts that counted before; $15 summaries
--  $16 why it is parked and $17 fingerprint, both NULL when no job is a replay's
WITH held AS MATERIALIZED (
    SELECT claim_id, token, flow_ids, seqs, attempts FROM tenantry.claims
     WHERE claim_id = ANY (ARRAY(SELECT DISTINCT unnest($3::bigint[]))) AND node_id = $1 AND incarnation = $2
     ORDER BY claim_id FOR UPDATE
), parts AS MATERIALIZED (
    SELECT h.claim_id, h.token, u.flow_id, u.seq, u.attempts, u.n
      FROM held h, unnest(h.flow_ids, h.seqs, h.attempts) WITH ORDINALITY u (flow_id, seq, attempts, n)
), settled AS MATERIALIZED (
    SELECT g.* FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::real[], $8::smallint[], $9::float8[],
                           $10::smallint[], $11::text[], $12::text[], $13::text[], $14::smallint[], $16::text[], $17::text[])
           g (claim_id, token, flow_id, seq, busy, ending, retry_for, status, error_class, excerpt, reason, attempts,
              park_reason, fingerprint)
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
), living AS MATERIALIZED (
    -- OFFSET 0 keeps each look-up a look-up: one probe of the key a job, whatever the statistics say.
    SELECT s.*, j.*, f.target, f.job_class, f.replay,
           CASE WHEN s.ending IN (1, 3) AND j.job_id IS NOT NULL
                THEN clock_timestamp() + make_interval(secs => coalesce(s.retry_for, 0)) END AS due_at,
           -- Given back, it does not count; nor where a job is dead before it was tried once more.
           -- Attempts are counted for each replay, and numbered through all of them: prior + counted.
           CASE WHEN s.ending IN (1, 2, 5) AND s.error_class IS NOT NULL THEN s.attempts + 1 ELSE s.attempts END AS counted
      FROM settled s
      LEFT JOIN LATERAL (SELECT ctid AS place, job_id, tenant_id, payload, content_type, headers, prior,
                                coalesce(accepted_at, submitted_at) AS submitted_at, bulk_id, has_key
                           FROM tenantry.jobs WHERE flow_id = s.flow_id AND seq = s.seq OFFSET 0) j ON true
      LEFT JOIN LATERAL (SELECT job_class, replay, (SELECT target FROM tenantry.lanes WHERE lane_id = x.lane_id) AS target
                           FROM tenantry.flows x WHERE x.flow_id = s.flow_id OFFSET 0) f ON true
), failed AS (
    INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, status, error_class, excerpt)
    SELECT job_id, prior + counted, tenant_id, busy, status, error_class, excerpt
      FROM living WHERE ending = 1 AND job_id IS NOT NULL AND error_class IS NOT NULL
    ON CONFLICT DO NOTHING
), back AS (
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts, first)
    SELECT flow_id, seq, tenant_id, due_at, counted, ending = 3 FROM living WHERE due_at IS NOT NULL
), ended AS MATERIALIZED (
    SELECT * FROM living WHERE ending IN (2, 5) AND job_id IS NOT NULL
), deleted AS (
    DELETE FROM tenantry.jobs WHERE ctid = ANY (ARRAY(SELECT place FROM ended))
), history AS (
    DELETE FROM tenantry.attempts a WHERE a.job_id = ANY (ARRAY(SELECT job_id FROM ended WHERE attempts + prior > 0))
    RETURNING a.job_id, a.number, a.ended_at, a.busy_for, a.status, a.error_class, a.excerpt
), before AS (
    SELECT job_id, jsonb_agg(jsonb_build_object('number', number, 'ended_at', extract(epoch FROM ended_at),
             'busy_for', busy_for, 'status', status, 'error_class', error_class, 'excerpt', excerpt) ORDER BY number) AS told
      FROM history GROUP BY job_id
), gone AS MATERIALIZED (
    SELECT s.*,
           coalesce(b.told, '[]') || CASE WHEN s.error_class IS NULL THEN '[]' ELSE jsonb_build_array(jsonb_build_object(
             'number', s.prior + s.counted, 'ended_at', extract(epoch FROM clock_timestamp()), 'busy_for', s.busy,
             'status', s.status, 'error_class', s.error_class, 'excerpt', s.excerpt)) END AS history
      FROM ended s LEFT JOIN before b USING (job_id)
), buried AS (
    INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at,
                                       attempts, status, reason, history)
    SELECT s.job_id, s.tenant_id, s.target, s.job_class, s.payload, s.content_type, s.headers, s.submitted_at, s.prior + s.counted,
           s.status, coalesce(s.reason, ''), s.history
      FROM gone s WHERE s.ending = 2
), aside AS (
    INSERT INTO tenantry.parked (job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at, attempts,
                                 status, reason, history, bulk_id, replay_id, fingerprint, error_class, park_reason)
    SELECT s.job_id, s.tenant_id, s.target, s.job_class, s.payload, s.content_type, s.headers, s.submitted_at, s.prior + s.counted,
           s.status, coalesce(s.reason, ''), s.history, s.bulk_id, s.replay, s.fingerprint,
           coalesce(s.error_class, s.history -> -1 ->> 'error_class', ''), s.park_reason
      FROM gone s WHERE s.ending = 5 AND $16::text[] IS NOT NULL
), recorded AS (
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, status, bulk_id, ended_at)
    SELECT job_id, tenant_id, 2, prior + counted, status, bulk_id, clock_timestamp() FROM ended WHERE ending = 2
), aging AS (
    UPDATE tenantry.idempotency SET expires_at = clock_timestamp() + interval '24 hours'
     WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended WHERE has_key))
), replayed AS (
    INSERT INTO tenantry.replay_ends (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses, fingerprints, busy)
    SELECT replay, tenant_id, array_agg(job_id),
           array_agg(CASE ending WHEN 1 THEN 4 WHEN 2 THEN 2 ELSE 3 END::smallint), array_agg((prior + counted)::smallint),
           array_agg(coalesce(error_class, '')), array_agg(status), array_agg(coalesce(fingerprint, '')), array_agg(busy)
      FROM living WHERE $16::text[] IS NOT NULL AND replay <> '' AND ending IN (1, 2, 5) AND job_id IS NOT NULL GROUP BY 1, 2
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, due_at, attempts, first, ended_tenants, ended_counts, summaries)
    SELECT 2, s.flow_ids, s.seqs, s.due_at, s.attempts, s.first, t.tenants, t.counts,
           -- An old token says nothing (law K2), so not of the target either.
           CASE WHEN (SELECT count(*) FROM settled) = cardinality($3::bigint[]) THEN $15::text END
      FROM (SELECT array_agg(flow_id) AS flow_ids, array_agg(seq) AS seqs,
                   array_agg(due_at) AS due_at, array_agg(counted::smallint) AS attempts, array_agg(ending = 3) AS first
              FROM living) s,
           (SELECT array_agg(tenant_id) AS tenants, array_agg(n) AS counts
              FROM (SELECT tenant_id, count(*)::integer AS n FROM ended WHERE replay = '' GROUP BY 1) x) t
     WHERE s.seqs IS NOT NULL
)
SELECT count(*) FROM settled

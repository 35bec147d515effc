-- Take back up to $1 expired claims. A started attempt counts, is remembered as lost, and its job goes to the end of
-- its line as a retry does; the one that makes $2 ends it. One that never started does not count, and its job goes to
-- the front. Where a replay holds what is unknown, a started attempt parks its job. $3: the fingerprint of a lost attempt.
WITH expired AS MATERIALIZED (
    SELECT claim_id FROM tenantry.claims WHERE expires_at <= clock_timestamp()
     ORDER BY claim_id LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM tenantry.claims c USING expired e WHERE c.claim_id = e.claim_id
    RETURNING c.started, c.claimed_at, c.flow_ids, c.seqs, c.attempts
), parts AS MATERIALIZED (
    SELECT g.started, g.claimed_at, u.flow_id, u.seq, u.attempts + g.started::integer AS attempts,
           g.started AND u.attempts + 1 >= $2::integer AS spent
      FROM gone g, unnest(g.flow_ids, g.seqs, g.attempts) u (flow_id, seq, attempts)
), living AS MATERIALIZED (
    SELECT p.*, j.*, f.replay, f.held, coalesce(j.prior, 0) + p.attempts AS number,
           CASE WHEN j.job_id IS NOT NULL AND NOT p.spent AND NOT f.held THEN clock_timestamp() END AS due_at
      FROM parts p
     CROSS JOIN LATERAL (
        SELECT replay, CASE WHEN p.started AND replay <> '' THEN coalesce(
                         (SELECT hold_unknown FROM tenantry.replay_terms WHERE replay_id = x.replay), false) ELSE false END AS held
          FROM tenantry.flows x WHERE x.flow_id = p.flow_id OFFSET 0) f
      LEFT JOIN LATERAL (SELECT ctid AS place, job_id, tenant_id, prior FROM tenantry.jobs
                          WHERE flow_id = p.flow_id AND seq = p.seq OFFSET 0) j ON true
), lost AS (
    INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, error_class, excerpt)
    SELECT job_id, number, tenant_id, extract(epoch FROM clock_timestamp() - claimed_at), 'worker_lost',
           'the lease of the worker ran out'
      FROM living WHERE started AND due_at IS NOT NULL
    ON CONFLICT DO NOTHING
), back AS (
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts, first)
    SELECT flow_id, seq, tenant_id, due_at, attempts, NOT started FROM living WHERE due_at IS NOT NULL
), ended AS (
    DELETE FROM tenantry.jobs WHERE ctid = ANY (ARRAY(SELECT place FROM living WHERE (spent OR held) AND job_id IS NOT NULL))
    RETURNING *
), history AS (
    DELETE FROM tenantry.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended))
    RETURNING job_id, number, ended_at, busy_for, status, error_class, excerpt
), story AS (
    -- What was kept of the job, and the attempt that is lost now.
    SELECT job_id, jsonb_agg(jsonb_build_object('number', number, 'ended_at', extract(epoch FROM ended_at),
             'busy_for', busy_for, 'status', status, 'error_class', error_class, 'excerpt', excerpt) ORDER BY number) AS told
      FROM (SELECT * FROM history
             UNION ALL
            SELECT job_id, number, clock_timestamp(), extract(epoch FROM clock_timestamp() - claimed_at), NULL,
                   'worker_lost', 'the lease of the worker ran out'
              FROM living WHERE (spent OR held) AND job_id IS NOT NULL) a
     GROUP BY job_id
), finished AS MATERIALIZED (
    SELECT e.job_id, e.tenant_id, e.payload, e.content_type, e.headers, coalesce(e.accepted_at, e.submitted_at) AS submitted_at,
           e.bulk_id, e.has_key, l.number, l.replay, l.held, s.told, f.target, f.job_class
      FROM ended e JOIN living l USING (job_id) JOIN story s USING (job_id)
     CROSS JOIN LATERAL (SELECT job_class, (SELECT target FROM tenantry.lanes WHERE lane_id = x.lane_id) AS target
                           FROM tenantry.flows x WHERE x.flow_id = e.flow_id OFFSET 0) f
), buried AS (
    INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at,
                                       attempts, reason, history)
    SELECT job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at, number,
           format('worker_lost after %s attempts: its last worker was lost too', number), told
      FROM finished WHERE NOT held
    RETURNING job_id, tenant_id, reason
), aside AS (
    INSERT INTO tenantry.parked (job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at, attempts,
                                 reason, history, bulk_id, replay_id, fingerprint, error_class, park_reason)
    SELECT job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at, number,
           'unknown: its worker was lost, and it may have been delivered', told, bulk_id, replay, $3::text, 'worker_lost',
           'unknown'
      FROM finished WHERE held
), recorded AS (
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
    SELECT job_id, tenant_id, 2, number, bulk_id, clock_timestamp() FROM finished WHERE NOT held
), replayed AS (
    INSERT INTO tenantry.replay_ends (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses, fingerprints, busy)
    SELECT replay, tenant_id, array_agg(job_id), array_agg(CASE WHEN held THEN 3 WHEN spent THEN 2 ELSE 5 END::smallint),
           array_agg(number::smallint), array_agg('worker_lost'::text), array_agg(NULL::smallint), array_agg($3::text),
           array_agg(extract(epoch FROM clock_timestamp() - claimed_at)::real)
      FROM living WHERE started AND replay <> '' AND job_id IS NOT NULL GROUP BY 1, 2
), aging AS (
    UPDATE tenantry.idempotency SET expires_at = clock_timestamp() + interval '24 hours'
     WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended WHERE has_key))
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, reported, due_at, attempts, first, ended_tenants, ended_counts)
    SELECT 2, s.flow_ids, s.seqs, false, s.due_at, s.attempts, s.first, t.tenants, t.counts
      FROM (SELECT array_agg(flow_id) AS flow_ids, array_agg(seq) AS seqs, array_agg(due_at) AS due_at, array_agg(attempts::smallint) AS attempts, array_agg(NOT started) AS first
              FROM living) s,
           (SELECT array_agg(tenant_id) AS tenants, array_agg(n) AS counts
              FROM (SELECT tenant_id, count(*)::integer AS n FROM finished WHERE replay = '' GROUP BY 1) x) t
     WHERE s.seqs IS NOT NULL
)
SELECT b.job_id, b.tenant_id, b.reason, n.jobs
  FROM (SELECT count(*) AS jobs FROM living WHERE job_id IS NOT NULL) n LEFT JOIN buried b ON true

-- Take back up to $1 expired claims. A started attempt counts, is remembered as lost, and its job goes to the end of
-- its line as a retry does; the one that makes $2 ends it. One that never started does not count, and its job goes to
-- the front.
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
    SELECT p.*, j.*, CASE WHEN j.job_id IS NOT NULL AND NOT p.spent THEN clock_timestamp() END AS due_at
      FROM parts p
      LEFT JOIN LATERAL (SELECT ctid AS place, job_id, tenant_id FROM tenantry.jobs
                          WHERE flow_id = p.flow_id AND seq = p.seq OFFSET 0) j ON true
), lost AS (
    INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, error_class, excerpt)
    SELECT job_id, attempts, tenant_id, extract(epoch FROM clock_timestamp() - claimed_at), 'worker_lost',
           'the lease of the worker ran out'
      FROM living WHERE started AND due_at IS NOT NULL
    ON CONFLICT DO NOTHING
), back AS (
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts, first)
    SELECT flow_id, seq, tenant_id, due_at, attempts, NOT started FROM living WHERE due_at IS NOT NULL
), ended AS (
    DELETE FROM tenantry.jobs WHERE ctid = ANY (ARRAY(SELECT place FROM living WHERE spent AND job_id IS NOT NULL))
    RETURNING job_id, tenant_id, flow_id, bulk_id, has_key, payload, content_type, submitted_at
), history AS (
    DELETE FROM tenantry.attempts WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended))
    RETURNING job_id, number, ended_at, busy_for, status, error_class, excerpt
), story AS (
    -- What was kept of the job, and the attempt that is lost now.
    SELECT job_id, jsonb_agg(jsonb_build_object('number', number, 'ended_at', extract(epoch FROM ended_at),
             'busy_for', busy_for, 'status', status, 'error_class', error_class, 'excerpt', excerpt) ORDER BY number) AS told
      FROM (SELECT * FROM history
             UNION ALL
            SELECT job_id, attempts, clock_timestamp(), extract(epoch FROM clock_timestamp() - claimed_at), NULL,
                   'worker_lost', 'the lease of the worker ran out'
              FROM living WHERE spent AND job_id IS NOT NULL) a
     GROUP BY job_id
), buried AS (
    INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, submitted_at, attempts,
                                       reason, history)
    SELECT e.job_id, e.tenant_id, f.target, f.job_class, e.payload, e.content_type, e.submitted_at, $2::integer,
           format('worker_lost after %s attempts: its last worker was lost too', $2::integer), s.told
      FROM ended e JOIN story s USING (job_id)
     CROSS JOIN LATERAL (SELECT job_class, (SELECT target FROM tenantry.lanes WHERE lane_id = x.lane_id) AS target
                           FROM tenantry.flows x WHERE x.flow_id = e.flow_id OFFSET 0) f
    RETURNING job_id, tenant_id, reason
), recorded AS (
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
    SELECT job_id, tenant_id, 2, $2::integer, bulk_id, clock_timestamp() FROM ended
), aging AS (
    UPDATE tenantry.idempotency SET expires_at = clock_timestamp() + interval '24 hours'
     WHERE job_id = ANY (ARRAY(SELECT job_id FROM ended WHERE has_key))
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, reported, due_at, attempts, first, ended_tenants, ended_counts)
    SELECT 2, s.flow_ids, s.seqs, false, s.due_at, s.attempts, s.first, t.tenants, t.counts
      FROM (SELECT array_agg(flow_id) AS flow_ids, array_agg(seq) AS seqs, array_agg(due_at) AS due_at, array_agg(attempts::smallint) AS attempts, array_agg(NOT started) AS first
              FROM living) s,
           (SELECT array_agg(tenant_id) AS tenants, array_agg(n) AS counts
              FROM (SELECT tenant_id, count(*)::integer AS n FROM ended GROUP BY 1) x) t
     WHERE s.seqs IS NOT NULL
)
SELECT b.job_id, b.tenant_id, b.reason, n.jobs
  FROM (SELECT count(*) AS jobs FROM living WHERE job_id IS NOT NULL) n LEFT JOIN buried b ON true

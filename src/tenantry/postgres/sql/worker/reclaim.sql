-- Take back up to $1 expired claims. A started attempt counts, is remembered as lost, and its job goes to the end of
-- its line as a retry does; one that never started does not count, and its job goes to the front.
WITH expired AS MATERIALIZED (
    SELECT claim_id FROM tenantry.claims WHERE expires_at <= clock_timestamp()
     ORDER BY claim_id LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM tenantry.claims c USING expired e WHERE c.claim_id = e.claim_id
    RETURNING c.started, c.claimed_at, c.flow_ids, c.seqs, c.attempts
), parts AS MATERIALIZED (
    SELECT g.started, g.claimed_at, u.flow_id, u.seq, u.attempts
      FROM gone g, unnest(g.flow_ids, g.seqs, g.attempts) u (flow_id, seq, attempts)
), living AS MATERIALIZED (
    SELECT p.*, j.job_id, j.tenant_id
      FROM parts p JOIN tenantry.jobs j ON j.flow_id = p.flow_id AND j.seq = p.seq
), lost AS (
    INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, error_class, excerpt)
    SELECT job_id, attempts + 1, tenant_id, extract(epoch FROM clock_timestamp() - claimed_at), 'worker_lost',
           'the lease of the worker ran out'
      FROM living WHERE started
    ON CONFLICT DO NOTHING
), back AS (
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts, first)
    SELECT flow_id, seq, tenant_id, clock_timestamp(), CASE WHEN started THEN attempts + 1 ELSE attempts END, NOT started
      FROM living
    RETURNING flow_id, seq, due_at, attempts, first
), told AS (
    INSERT INTO tenantry.changes (kind, flow_ids, seqs, busy, due_at, attempts, first)
    SELECT 2, array_agg(p.flow_id), array_agg(p.seq), array_agg(NULL::real), array_agg(b.due_at), array_agg(b.attempts),
           array_agg(b.first)
      FROM parts p LEFT JOIN back b ON b.flow_id = p.flow_id AND b.seq = p.seq
    HAVING count(*) > 0
)
SELECT count(*) FROM living

-- The bound tenant's dead letters behind ($1, $2), up to ($3, $4) inclusive: at most $5, and of those the first
-- $6 bytes of payload, at least one. Lengths are known without reading what is stored out of line.
WITH chosen AS MATERIALIZED (
    SELECT job_id, died_at, octet_length(payload) AS size
      FROM tenantry.dead_letters
     WHERE died_at >= $1 AND died_at <= $3 AND (died_at, job_id) > ($1, $2) AND (died_at, job_id) <= ($3, $4)
     ORDER BY tenant_id, died_at, job_id
     LIMIT $5
), sized AS (
    SELECT job_id, sum(size) OVER (ORDER BY died_at, job_id) - size AS before FROM chosen
)
SELECT d.job_id, d.target, d.payload, d.content_type, d.headers, d.died_at, d.attempts, d.reason,
       d.history -> -1 ->> 'error_class' AS error_class
  FROM sized s JOIN tenantry.dead_letters d USING (job_id)
 WHERE s.before < $6
 ORDER BY d.died_at, d.job_id

-- $1 of the bound tenant's dead letters, each as likely as any other: the first in the order of a hash of their
-- ids with the seed $2. The ids are read where they lie in order; payloads only of the chosen ones.
WITH chosen AS MATERIALIZED (
    SELECT job_id
      FROM (SELECT job_id FROM tenantry.dead_letters ORDER BY tenant_id, died_at, job_id) mine
     ORDER BY uuid_hash_extended(job_id, $2::bigint)
     LIMIT $1::integer
)
SELECT d.job_id, d.target, d.payload, d.content_type, d.headers, d.died_at, d.attempts, d.reason,
       d.history -> -1 ->> 'error_class' AS error_class
  FROM chosen c JOIN tenantry.dead_letters d USING (job_id)
 ORDER BY d.died_at, d.job_id

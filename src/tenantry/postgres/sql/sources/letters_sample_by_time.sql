-- $1 of the bound tenant's dead letters, without reading them all: by chance (a hash of their ids with the seed $3)
-- of the eight that died next behind each of the parts $2 of the time in which all died; where these are too few,
-- the oldest. Eight: of letters that died at one instant the first by id is not always the one.
WITH span AS (
    SELECT min(died_at) AS low, max(died_at) AS high FROM tenantry.dead_letters
), chosen AS (
    SELECT job_id, min(rank) AS rank
      FROM (SELECT near.job_id, 0 AS rank
              FROM span, unnest($2::float8[]) part
             CROSS JOIN LATERAL (SELECT job_id FROM tenantry.dead_letters
                                  WHERE died_at >= span.low + (span.high - span.low) * part
                                  ORDER BY tenant_id, died_at, job_id LIMIT 8) near
             UNION ALL
            (SELECT job_id, 1 FROM tenantry.dead_letters ORDER BY tenant_id, died_at, job_id LIMIT $1::integer)) found
     GROUP BY job_id
     ORDER BY rank, uuid_hash_extended(job_id, $3::bigint)
     LIMIT $1::integer
)
SELECT d.job_id, d.target, d.payload, d.content_type, d.headers, d.died_at, d.attempts, d.reason,
       d.history -> -1 ->> 'error_class' AS error_class
  FROM chosen c JOIN tenantry.dead_letters d USING (job_id)
 ORDER BY d.died_at, d.job_id

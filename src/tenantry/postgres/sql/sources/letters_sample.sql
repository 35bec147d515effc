-- $1 of the bound tenant's dead letters, at even distances in time as far as they lie so, else the oldest.
WITH span AS (
    SELECT min(died_at) AS low, max(died_at) AS high FROM tenantry.dead_letters
), chosen AS (
    SELECT job_id, min(rank) AS rank
      FROM (SELECT near.job_id, 0 AS rank
              FROM span, generate_series(0, $1::integer - 1) n
             CROSS JOIN LATERAL (SELECT job_id FROM tenantry.dead_letters
                                  WHERE died_at >= span.low + (span.high - span.low) * (n::float8 / $1::integer)
                                  ORDER BY tenant_id, died_at, job_id LIMIT 1) near
             UNION ALL
            (SELECT job_id, 1 FROM tenantry.dead_letters ORDER BY tenant_id, died_at, job_id LIMIT $1::integer)) found
     GROUP BY job_id
     ORDER BY rank
     LIMIT $1::integer
)
SELECT d.job_id, d.target, d.payload, d.content_type, d.headers, d.died_at, d.attempts, d.reason,
       d.history -> -1 ->> 'error_class' AS error_class
  FROM chosen c JOIN tenantry.dead_letters d USING (job_id)
 ORDER BY d.died_at, d.job_id

-- The end of the bound tenant's dead letters as of now, and how many there are up to it.
SELECT (SELECT count(*) FROM tenantry.dead_letters) AS count, last.died_at, last.job_id
  FROM (SELECT 1) one
  LEFT JOIN LATERAL (SELECT died_at, job_id FROM tenantry.dead_letters
                      ORDER BY tenant_id DESC, died_at DESC, job_id DESC LIMIT 1) last ON true

-- How many dead letters of the bound tenant lie behind ($1, $2): died_at, job_id.
SELECT count(*) FROM tenantry.dead_letters WHERE died_at >= $1 AND (died_at, job_id) > ($1, $2)

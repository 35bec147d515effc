-- How many dead letters of the bound tenant lie up to ($1, $2) inclusive: died_at, job_id.
SELECT count(*) FROM tenantry.dead_letters WHERE died_at <= $1 AND (died_at, job_id) <= ($1, $2)

-- How the named jobs ended, counted by state. $1 their ids; those without an end are not counted.
SELECT o.state, count(*) AS jobs
  FROM unnest($1::uuid[]) g (job_id)
 CROSS JOIN LATERAL (SELECT state FROM tenantry.outcomes WHERE job_id = g.job_id LIMIT 1) o
 GROUP BY o.state

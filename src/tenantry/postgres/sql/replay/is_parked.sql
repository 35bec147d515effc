-- Whether the bound tenant has this parked message. $1 its job.
SELECT EXISTS (SELECT FROM tenantry.parked WHERE job_id = $1)

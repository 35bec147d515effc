-- The end of the bound tenant's dead letters as of now.
SELECT died_at, job_id FROM tenantry.dead_letters ORDER BY tenant_id DESC, died_at DESC, job_id DESC LIMIT 1

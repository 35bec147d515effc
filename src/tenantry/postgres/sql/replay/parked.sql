-- Parked messages of the bound tenant, by id. $1 tenant, $2 replay or NULL, $3 after this one or NULL, $4 most.
SELECT job_id, tenant_id, replay_id, target, payload, content_type, headers, park_reason, reason, fingerprint, attempts, parked_at
  FROM tenantry.parked
 WHERE tenant_id = $1 AND ($2::text IS NULL OR replay_id = $2) AND ($3::uuid IS NULL OR job_id > $3)
 ORDER BY job_id LIMIT $4

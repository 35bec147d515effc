-- $1 tenant, $2 replay.
SELECT spec FROM tenantry.replays WHERE tenant_id = $1 AND replay_id = $2

-- A person is told of it, so its commit waits for the disk.
-- $1 tenant, $2 replay, $3 spec, $4 the spec that it replaces, $5 states.
UPDATE tenantry.replays SET spec = $3
 WHERE tenant_id = $1 AND replay_id = $2 AND spec = $4 AND state = ANY ($5::text[])
RETURNING replay_id, set_config('synchronous_commit', 'on', true)

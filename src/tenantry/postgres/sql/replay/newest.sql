-- The newest replays of the bound tenant, or on the engine's login of all. $1 tenant or NULL, $2 states or NULL, $3 most.
SELECT replay_id FROM tenantry.replays
 WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text[] IS NULL OR state = ANY ($2))
 ORDER BY replay_id DESC LIMIT $3

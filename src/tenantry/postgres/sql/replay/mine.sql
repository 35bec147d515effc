-- Whether the bound tenant has this replay. $1 its id.
SELECT EXISTS (SELECT FROM tenantry.replays WHERE replay_id = $1)

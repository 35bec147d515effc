-- What is known of these keys of the bound tenant. $1 tenant, $2 keys, $3 lifetime in seconds where it has none of its own.
SELECT k.key, k.state
  FROM tenantry.known_keys($1, $2::bytea[],
         coalesce((SELECT lifetime_for FROM tenantry.replay_tenants WHERE tenant_id = $1), $3::float8)) k

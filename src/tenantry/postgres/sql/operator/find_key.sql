SELECT name, secret_hash, expires_at, revoked_at IS NOT NULL AS revoked FROM tenantry.operator_keys WHERE key_id = $1

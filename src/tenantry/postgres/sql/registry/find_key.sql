SELECT tenant_id, secret_hash, expires_at, revoked_at IS NOT NULL AS revoked FROM tenantry.api_keys WHERE key_id = $1

-- The API keys of one tenant ($1), the newest first. Never their hashes.
SELECT key_id, note, created_at, expires_at, revoked_at FROM tenantry.api_keys
 WHERE tenant_id = $1 ORDER BY created_at DESC, key_id

-- The operators' keys, the newest first. Never their hashes.
SELECT key_id, name AS note, created_at, expires_at, revoked_at FROM tenantry.operator_keys ORDER BY created_at DESC, key_id

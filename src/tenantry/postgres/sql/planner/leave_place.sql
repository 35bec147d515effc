-- $1 term. Frees the place at once.
UPDATE tenantry.place SET expires_at = '-infinity' WHERE term = $1

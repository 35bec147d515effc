-- In small batches: $1 most. How many went.
WITH old AS (
    SELECT ctid FROM tenantry.idempotency WHERE expires_at < clock_timestamp() LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM tenantry.idempotency i USING old o WHERE i.ctid = o.ctid RETURNING 1
)
SELECT count(*) FROM gone

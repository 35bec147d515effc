-- $1 replay, $2 most rows. Consumed by DELETE, never by cursor: ids commit out of order.
WITH told AS (
    SELECT ctid FROM tenantry.replay_ends WHERE replay_id = $1 ORDER BY end_id LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM tenantry.replay_ends e WHERE e.ctid = ANY (ARRAY(SELECT ctid FROM told)) RETURNING e.*

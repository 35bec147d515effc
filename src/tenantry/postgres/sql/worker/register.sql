-- $1 node, $2 pool, $3 slots, $4 kinds. A name that comes back is a new incarnation.
WITH joined AS (
    INSERT INTO tenantry.nodes AS n (node_id, pool, slots, kinds, seen_at)
    VALUES ($1, $2, $3, $4, clock_timestamp())
    ON CONFLICT (node_id) DO UPDATE
       SET incarnation = n.incarnation + 1, pool = EXCLUDED.pool, slots = EXCLUDED.slots, kinds = EXCLUDED.kinds,
           draining = false, seen_at = EXCLUDED.seen_at
    RETURNING incarnation
), told AS (
    INSERT INTO tenantry.changes (kind) SELECT 5 FROM joined
)
SELECT incarnation FROM joined

-- $1 node, $2 pool, $3 slots, $4 kinds, $5 seconds a heartbeat is good for. A name that comes back is a new incarnation;
-- one whose heartbeat is fresh is another's, and answered as it stands. No row: it came between the two looks.
WITH joined AS (
    INSERT INTO tenantry.nodes AS n (node_id, pool, slots, kinds, seen_at)
    VALUES ($1, $2, $3, $4, clock_timestamp())
    ON CONFLICT (node_id) DO UPDATE
       SET incarnation = n.incarnation + 1, pool = EXCLUDED.pool, slots = EXCLUDED.slots, kinds = EXCLUDED.kinds,
           draining = false, seen_at = EXCLUDED.seen_at
     WHERE n.seen_at <= clock_timestamp() - make_interval(secs => $5::float8)
    RETURNING incarnation
), told AS (
    INSERT INTO tenantry.changes (kind) SELECT 5 FROM joined
)
SELECT true AS joined, incarnation, NULL::timestamptz AS beat_at, NULL::float8 AS frees_in, false AS draining FROM joined
 UNION ALL
SELECT false, incarnation, seen_at, $5 - extract(epoch FROM clock_timestamp() - seen_at)::float8, draining
  FROM tenantry.nodes WHERE node_id = $1 AND NOT EXISTS (SELECT FROM joined)

-- $1 node, $2 incarnation.
WITH gone AS (
    UPDATE tenantry.nodes SET seen_at = '-infinity' WHERE node_id = $1 AND incarnation = $2 RETURNING 1
)
INSERT INTO tenantry.changes (kind) SELECT 5 FROM gone

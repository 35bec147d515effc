-- $1 node, $2 incarnation. Long silent, so that the name is free at once; not silent for ever: the row must outlive a
-- worker that was stopped for less than a day, or the next one under this name would be taken for that.
WITH gone AS (
    UPDATE tenantry.nodes SET seen_at = clock_timestamp() - interval '1 hour' WHERE node_id = $1 AND incarnation = $2 RETURNING 1
)
INSERT INTO tenantry.changes (kind) SELECT 5 FROM gone

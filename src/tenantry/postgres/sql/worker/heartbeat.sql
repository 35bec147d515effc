-- $1 node, $2 incarnation, $3 draining. Tells the planner when draining begins.
WITH before AS (
    SELECT draining FROM tenantry.nodes WHERE node_id = $1 AND incarnation = $2 FOR UPDATE
), beat AS (
    UPDATE tenantry.nodes SET seen_at = clock_timestamp(), draining = $3 WHERE node_id = $1 AND incarnation = $2
), told AS (
    INSERT INTO tenantry.changes (kind) SELECT 5 FROM before WHERE draining <> $3
)
SELECT count(*) FROM before

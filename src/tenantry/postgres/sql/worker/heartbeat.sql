-- $1 node, $2 incarnation, $3 draining. Tells the planner when draining begins, and the node whether it is known.
WITH before AS MATERIALIZED (
    -- By name alone, so that a registration that goes first is seen for what it is.
    SELECT incarnation, draining FROM tenantry.nodes WHERE node_id = $1 FOR UPDATE
), beat AS (
    UPDATE tenantry.nodes SET seen_at = clock_timestamp(), draining = $3 WHERE node_id = $1 AND incarnation = $2
), told AS (
    INSERT INTO tenantry.changes (kind) SELECT 5 FROM before WHERE incarnation = $2 AND draining <> $3
)
SELECT CASE WHEN b.incarnation = $2 THEN 'present' WHEN b.incarnation > $2 THEN 'superseded' ELSE 'forgotten' END
  FROM (VALUES (1)) one LEFT JOIN before b ON true

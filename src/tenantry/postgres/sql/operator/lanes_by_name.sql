-- $1 tenant, $2 target (NULL: any), $3 and $4 the tenant and target that the answer begins behind, $5 at most so many,
-- $6 state (NULL: any). One of the three branches runs, each along an index from where it begins.
SELECT found.lane_id FROM (
    (SELECT l.lane_id, l.tenant_id, l.target FROM tenantry.lanes l
      WHERE $1::text IS NULL AND $2::text IS NULL AND (l.tenant_id, l.target) > ($3::text, $4::text)
        AND ($6::text IS NULL OR tenantry.lane_state(l.lane_id, l.tenant_id, l.target) = $6)
      ORDER BY l.tenant_id, l.target LIMIT $5)
    UNION ALL
    (SELECT l.lane_id, l.tenant_id, l.target FROM tenantry.lanes l
      WHERE l.tenant_id = $1 AND ($2 IS NULL OR l.target = $2) AND (l.tenant_id, l.target) > ($3, $4)
        AND ($6 IS NULL OR tenantry.lane_state(l.lane_id, l.tenant_id, l.target) = $6)
      ORDER BY l.tenant_id, l.target LIMIT $5)
    UNION ALL
    (SELECT l.lane_id, l.tenant_id, l.target FROM tenantry.lanes l
      WHERE $1 IS NULL AND l.target = $2 AND (l.tenant_id, l.target) > ($3, $4)
        AND ($6 IS NULL OR tenantry.lane_state(l.lane_id, l.tenant_id, l.target) = $6)
      ORDER BY l.target, l.tenant_id LIMIT $5)
) found
ORDER BY found.tenant_id, found.target
LIMIT $5

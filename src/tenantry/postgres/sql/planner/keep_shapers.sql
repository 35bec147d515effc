-- $1 term; $2..$4 one row a lane: tenant, target, state. Nothing when the place is lost.
WITH place AS MATERIALIZED (
    SELECT term FROM tenantry.place
     WHERE term = $1 AND expires_at > clock_timestamp() AND EXISTS (SELECT FROM tenantry.served_term s WHERE s.term = $1)
       FOR SHARE
), kept AS (
    INSERT INTO tenantry.shapers AS s (lane_id, tenant_id, state, kept_at)
    SELECT l.lane_id, g.tenant_id, g.state, clock_timestamp()
      FROM place, unnest($2::text[], $3::text[], $4::jsonb[]) g (tenant_id, target, state)
     CROSS JOIN LATERAL (SELECT lane_id FROM tenantry.lanes
                          WHERE tenant_id = g.tenant_id AND target = g.target OFFSET 0) l
     ORDER BY l.lane_id
    ON CONFLICT (lane_id) DO UPDATE SET state = EXCLUDED.state, kept_at = EXCLUDED.kept_at
)
SELECT term FROM place

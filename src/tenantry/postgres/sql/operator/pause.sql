-- $1 tenant, $2 target, $3 paused. A lane may be paused before its first job.
WITH changed AS (
    INSERT INTO tenantry.lanes AS l (tenant_id, target, paused) VALUES ($1, $2, $3)
    ON CONFLICT (tenant_id, target) DO UPDATE SET paused = EXCLUDED.paused
    RETURNING l.lane_id
)
INSERT INTO tenantry.changes (kind, lane_id) SELECT 4, lane_id FROM changed

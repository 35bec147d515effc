-- $1 action, $2 tenant ('' for all), $3 target ('' for all), $4 ceiling, $5 reason, $6 by whom.
WITH given AS (
    INSERT INTO tenantry.order_log (action, tenant_id, target, ceiling, reason, ordered_by)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING *
), stands AS (
    INSERT INTO tenantry.orders AS o (tenant_id, target, action, order_id)
    SELECT tenant_id, target, action, order_id FROM given WHERE action IN ('pause', 'ceiling')
    ON CONFLICT (tenant_id, target, action) DO UPDATE SET order_id = EXCLUDED.order_id
), ended AS (
    DELETE FROM tenantry.orders
     WHERE tenant_id = $2 AND target = $3 AND action = CASE $1 WHEN 'resume' THEN 'pause' WHEN 'lift' THEN 'ceiling' END
), known AS (
    -- An order on one lane may come before its first job.
    INSERT INTO tenantry.lanes (tenant_id, target)
    SELECT tenant_id, target FROM given WHERE tenant_id <> '' AND target <> ''
    ON CONFLICT DO NOTHING
), forgotten AS (
    -- What was learned must not come back with the next planner; the one that is there hears of it. In key order, as the
    -- planner writes them.
    DELETE FROM tenantry.shapers WHERE $1 = 'reset' AND lane_id IN (
        SELECT s.lane_id FROM tenantry.shapers s JOIN tenantry.lanes l USING (lane_id)
         WHERE $1 = 'reset' AND ($2 = '' OR l.tenant_id = $2) AND ($3 = '' OR l.target = $3)
         ORDER BY s.lane_id FOR UPDATE OF s)
), told AS (
    INSERT INTO tenantry.changes (kind, order_id) SELECT 4, order_id FROM given
)
SELECT * FROM given

-- What the shaper of a lane has learned of its target. Written by the planner, at most once a second a lane; read when a
-- planner takes over, and by people. The encoding has its version inside (tenantry.lanes.shaper_state).
CREATE TABLE tenantry.shapers (
    lane_id   bigint      PRIMARY KEY REFERENCES tenantry.lanes ON DELETE CASCADE,
    tenant_id text        NOT NULL,
    state     jsonb       NOT NULL,
    kept_at   timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

ALTER TABLE tenantry.shapers ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenantry.shapers FORCE ROW LEVEL SECURITY;
CREATE POLICY engine ON tenantry.shapers TO tenantry_engine USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON tenantry.shapers TO tenantry_engine;
CREATE POLICY tenant ON tenantry.shapers FOR SELECT TO tenantry_tenant
    USING (tenant_id = NULLIF(current_setting('tenantry.tenant_id', true), ''));
GRANT SELECT ON tenantry.shapers TO tenantry_tenant;

-- What workers tell the shapers with the ends that they record: {"flow id": summary, ...}, read by the planner alone.
ALTER TABLE tenantry.changes ADD COLUMN summaries text;

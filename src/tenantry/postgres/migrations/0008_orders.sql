-- What persons order of lanes. The log is appended to and never changed; `orders` says what of it stands.

CREATE TABLE tenantry.order_log (
    order_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action     text        NOT NULL CHECK (action IN ('pause', 'resume', 'ceiling', 'lift', 'reset')),
    tenant_id  text        NOT NULL, -- '' for all of them
    target     text        NOT NULL, -- '' for all of them
    ceiling    integer CHECK (ceiling > 0),
    reason     text        NOT NULL,
    ordered_by text        NOT NULL,
    ordered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (tenant_id <> '' OR target <> ''),
    CHECK ((action = 'ceiling') = (ceiling IS NOT NULL))
);

CREATE TABLE tenantry.orders (
    tenant_id text   NOT NULL,
    target    text   NOT NULL,
    action    text   NOT NULL CHECK (action IN ('pause', 'ceiling')),
    order_id  bigint NOT NULL REFERENCES tenantry.order_log,
    PRIMARY KEY (tenant_id, target, action)
);
CREATE INDEX orders_order ON tenantry.orders (order_id);

-- Operators alone deal with orders, on the engine's login; tenants read of those over their lanes in answers.
ALTER TABLE tenantry.order_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenantry.order_log FORCE ROW LEVEL SECURITY;
ALTER TABLE tenantry.orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenantry.orders FORCE ROW LEVEL SECURITY;
CREATE POLICY engine_reads ON tenantry.order_log FOR SELECT TO tenantry_engine USING (true);
CREATE POLICY engine_appends ON tenantry.order_log FOR INSERT TO tenantry_engine WITH CHECK (true);
CREATE POLICY engine ON tenantry.orders TO tenantry_engine USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON tenantry.order_log TO tenantry_engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON tenantry.orders TO tenantry_engine;

-- Whoever may give orders over HTTP. A key's name is who it was.
CREATE TABLE tenantry.operator_keys (
    key_id      text PRIMARY KEY,
    name        text        NOT NULL,
    secret_hash bytea       NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz,
    revoked_at  timestamptz
);
GRANT SELECT ON tenantry.operator_keys TO tenantry_engine;

-- A change of kind 4 tells of an order.
ALTER TABLE tenantry.changes DROP COLUMN lane_id, ADD COLUMN order_id bigint;

-- The orders over one lane, the narrowest first: for whoever is shown the lane.
CREATE FUNCTION tenantry.orders_over(p_tenant text, p_target text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(to_jsonb(g) ORDER BY o.action DESC, o.target = '', o.tenant_id = ''), '[]')
      FROM tenantry.orders o JOIN tenantry.order_log g USING (order_id)
     WHERE (o.tenant_id, o.target) IN ((p_tenant, p_target), ('', p_target), (p_tenant, ''))
$$;
REVOKE ALL ON FUNCTION tenantry.orders_over FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.orders_over TO tenantry_engine;

-- Lanes of one target, whosever they are.
CREATE INDEX lanes_target ON tenantry.lanes (target, tenant_id);

-- Lanes that were paused before there were orders.
DO $$
BEGIN
    -- As the owner, whom the policy holds as well.
    EXECUTE format('CREATE POLICY migrating ON tenantry.lanes FOR SELECT TO %I USING (true)', current_user);
    EXECUTE format('CREATE POLICY migrating ON tenantry.order_log TO %I USING (true) WITH CHECK (true)', current_user);
    EXECUTE format('CREATE POLICY migrating ON tenantry.orders TO %I USING (true) WITH CHECK (true)', current_user);
    WITH paused AS (
        INSERT INTO tenantry.order_log (action, tenant_id, target, reason, ordered_by)
        SELECT 'pause', tenant_id, target, 'paused before reasons were kept', 'unknown' FROM tenantry.lanes WHERE paused
        RETURNING *
    )
    INSERT INTO tenantry.orders (tenant_id, target, action, order_id)
    SELECT tenant_id, target, action, order_id FROM paused;
    DROP POLICY migrating ON tenantry.lanes;
    DROP POLICY migrating ON tenantry.order_log;
    DROP POLICY migrating ON tenantry.orders;
END
$$;
ALTER TABLE tenantry.lanes DROP COLUMN paused;

-- As lanes/table.py state_of() has it.
CREATE FUNCTION tenantry.lane_state(p_lane bigint, p_tenant text, p_target text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN EXISTS (
            SELECT FROM tenantry.orders
             WHERE (tenant_id, target) IN ((p_tenant, p_target), ('', p_target), (p_tenant, '')) AND action = 'pause')
        THEN 'paused'
        -- As lanes/shaper_state.py lays it out, version 1: the breaker's state, and until when the target asked for peace.
        WHEN EXISTS (
            SELECT FROM tenantry.shapers
             WHERE lane_id = p_lane AND state -> 0 = '1'
               AND (state -> 3 ->> 0 <> 'closed' OR (state ->> 9)::float8 > extract(epoch FROM clock_timestamp())))
        THEN 'held' ELSE 'open' END
$$;
REVOKE ALL ON FUNCTION tenantry.lane_state FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.lane_state TO tenantry_engine;

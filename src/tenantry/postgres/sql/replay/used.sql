-- What the bound tenant uses of its quotas. $1 tenant.
SELECT coalesce((SELECT replayed FROM tenantry.replay_tenants
                  WHERE tenant_id = $1 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date), 0) AS a_day,
       coalesce((SELECT sum(g.keys) FROM tenantry.replay_generations g JOIN tenantry.replay_tenants t USING (tenant_id)
                  WHERE g.tenant_id = $1
                    AND ((g.day + 1)::timestamp AT TIME ZONE 'UTC') + make_interval(secs => t.lifetime_for) > clock_timestamp()),
                0)::bigint AS keys,
       (SELECT count(*) FROM tenantry.replays
         WHERE tenant_id = $1 AND placed AND state IN ('running', 'paused', 'held', 'draining', 'cancelling')) AS running

-- The workers whose heartbeat is fresh.
SELECT node_id, pool, slots, draining, kinds FROM tenantry.nodes
 WHERE seen_at > clock_timestamp() - interval '5 seconds' ORDER BY pool, node_id

-- $1 seconds a heartbeat is good for.
SELECT pool, sum(slots)::bigint AS slots FROM tenantry.nodes
 WHERE NOT draining AND seen_at > clock_timestamp() - make_interval(secs => $1::float8) GROUP BY pool

-- $1 term, $2 seconds a heartbeat is good for.
SELECT n.node_id, n.incarnation, n.pool, CASE WHEN n.draining THEN 0 ELSE n.slots END AS slots, n.kinds
  FROM tenantry.place p LEFT JOIN tenantry.nodes n
    ON n.seen_at > clock_timestamp() - make_interval(secs => $2::float8)
 WHERE p.term = $1 AND p.expires_at > clock_timestamp() AND EXISTS (SELECT FROM tenantry.served_term s WHERE s.term = $1)

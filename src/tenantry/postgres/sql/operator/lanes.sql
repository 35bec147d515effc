-- $1 lane ids, in the order of the answer. What each lane has waiting, delayed and in flight, under which orders.
WITH held AS MATERIALIZED (
    SELECT u.flow_id, count(*) AS n FROM tenantry.claims c, unnest(c.flow_ids) u (flow_id) GROUP BY 1
)
SELECT clock_timestamp() AS moment, l.tenant_id, l.target, w.waiting, w.delayed, w.running, s.state AS shaper,
       tenantry.orders_over(l.tenant_id, l.target) AS orders
  FROM unnest($1::bigint[]) WITH ORDINALITY g (lane_id, n)
 CROSS JOIN LATERAL (SELECT * FROM tenantry.lanes WHERE lane_id = g.lane_id OFFSET 0) l
 CROSS JOIN LATERAL (
    SELECT coalesce(sum(coalesce(h.n, 0)), 0)::bigint AS running, coalesce(sum(d.later), 0)::bigint AS delayed,
           coalesce(sum(greatest(0, t.tail - f.head + 1 - d.ahead + d.due - v.n)), 0)::bigint AS waiting
      FROM tenantry.flows f
     CROSS JOIN LATERAL (SELECT tail FROM tenantry.tails WHERE flow_id = f.flow_id OFFSET 0) t
     CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE due_at > clock_timestamp()) AS later,
               -- Still counted between head and tail, though not due; due, and counted there no more.
               count(*) FILTER (WHERE due_at > clock_timestamp() AND seq >= f.head) AS ahead,
               count(*) FILTER (WHERE due_at <= clock_timestamp() AND seq < f.head) AS due
          FROM tenantry.deferred WHERE flow_id = f.flow_id) d
     CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM tenantry.withdrawn WHERE flow_id = f.flow_id AND seq >= f.head) v
      LEFT JOIN held h ON h.flow_id = f.flow_id
     WHERE f.lane_id = l.lane_id) w
  LEFT JOIN LATERAL (SELECT state FROM tenantry.shapers WHERE lane_id = l.lane_id OFFSET 0) s ON true
 ORDER BY g.n

-- $1 numbers of orders that the planner just heard of. What stands by now for their scopes, and whether they reset.
SELECT g.tenant_id, g.target, bool_or(g.action = 'reset') AS reset, bool_or(o.action = 'pause') IS TRUE AS paused,
       max(o.ceiling) AS ceiling
  FROM unnest($1::bigint[]) n (order_id)
 CROSS JOIN LATERAL (SELECT * FROM tenantry.order_log WHERE order_id = n.order_id OFFSET 0) g
  LEFT JOIN LATERAL (
    SELECT o.action, l.ceiling
      FROM (SELECT * FROM tenantry.orders WHERE tenant_id = g.tenant_id AND target = g.target OFFSET 0) o
     CROSS JOIN LATERAL (SELECT ceiling FROM tenantry.order_log WHERE order_id = o.order_id OFFSET 0) l) o ON true
 GROUP BY 1, 2

-- Every scope that a person has paused or bounded.
SELECT o.tenant_id, o.target, false AS reset, bool_or(o.action = 'pause') AS paused, max(l.ceiling) AS ceiling
  FROM tenantry.orders o JOIN tenantry.order_log l USING (order_id)
 GROUP BY 1, 2

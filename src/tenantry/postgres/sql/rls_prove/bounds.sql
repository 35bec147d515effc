-- How partitions are bounded: a list of tenants leaves room for those tenants only.
SELECT c.oid::int8 AS oid, pg_get_expr(c.relpartbound, c.oid) AS bound
  FROM pg_class AS c
 WHERE c.relispartition AND c.relkind IN ('r', 'p')

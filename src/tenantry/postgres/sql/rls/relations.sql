WITH parents AS (
    SELECT i.inhrelid AS oid, array_agg(i.inhparent::int8 ORDER BY i.inhseqno) AS parents
      FROM pg_inherits AS i
     GROUP BY i.inhrelid
), reads AS ( -- what the query of a view reads, as its rule depends upon it
    SELECT w.ev_class AS oid, array_agg(DISTINCT d.refobjid::int8) AS reads, min(w.ev_action::text) AS tree
      FROM pg_rewrite AS w
      JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                         AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class
     WHERE w.rulename = '_RETURN'
     GROUP BY w.ev_class
), extensions AS (
    SELECT d.objid AS oid, e.extname
      FROM pg_depend AS d
      JOIN pg_extension AS e ON e.oid = d.refobjid
     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
), sequences AS (
    SELECT d.objid AS oid, d.refobjid::int8 AS table_oid, a.attname::text AS column_name
      FROM pg_depend AS d
      JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
       AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0
)
SELECT c.oid::int8 AS oid,
       n.nspname::text AS schema,
       c.relname::text AS name,
       c.relkind::text AS kind,
       pg_get_userbyid(c.relowner)::text AS owner,
       coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))::text[] AS acl,
       c.relrowsecurity AS rls_enabled,
       c.relforcerowsecurity AS rls_forced,
       c.relispartition AS is_partition,
       coalesce(p.parents, '{}') AS parents,
       c.reloptions AS options,
       coalesce(r.reads, '{}') AS reads,
       coalesce(r.tree, '') AS tree,
       coalesce(f.srvname::text, '') AS server,
       s.table_oid AS owner_table,
       s.column_name AS owner_column,
       coalesce(e.extname::text, '') AS extension,
       c.relpersistence = 't' AS temporary,
       c.reltuples::float8 AS rows
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  LEFT JOIN parents AS p ON p.oid = c.oid
  LEFT JOIN reads AS r ON r.oid = c.oid
  LEFT JOIN extensions AS e ON e.oid = c.oid
  LEFT JOIN sequences AS s ON s.oid = c.oid AND c.relkind = 'S'
  LEFT JOIN pg_foreign_table AS t ON t.ftrelid = c.oid
  LEFT JOIN pg_foreign_server AS f ON f.oid = t.ftserver
 WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
   AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')

SELECT c.oid::int8 AS oid,
       c.conrelid::int8 AS relation,
       c.conname::text AS name,
       c.contype::text AS kind,
       coalesce(c.conkey, '{}') AS columns,
       c.confrelid::int8 AS references,
       coalesce(c.confkey, '{}') AS referenced_columns,
       c.confdeltype::text AS on_delete,
       c.confupdtype::text AS on_update,
       c.conindid::int8 AS index,
       c.conparentid <> 0 AS inherited
  FROM pg_constraint AS c
  JOIN pg_namespace AS n ON n.oid = c.connamespace
 WHERE c.contype IN ('p', 'u', 'f', 'x', 'c') AND c.conrelid <> 0
   AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')
 ORDER BY c.conrelid, c.conname

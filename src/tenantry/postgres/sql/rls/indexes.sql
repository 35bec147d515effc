SELECT i.indexrelid::int8 AS oid,
       i.indrelid::int8 AS relation,
       c.relname::text AS name,
       m.amname::text AS method,
       i.indkey::int2[] AS columns,
       i.indclass::oid[]::int8[] AS classes,
       i.indnkeyatts::int4 AS key_count,
       i.indisunique AS unique,
       i.indisprimary AS primary,
       i.indisexclusion AS exclusion,
       i.indisvalid AS valid,
       i.indimmediate AS immediate,
       pg_get_expr(i.indpred, i.indrelid) AS predicate,
       -- an expression has no column of its own: its text, key by key
       CASE WHEN i.indexprs IS NOT NULL
            THEN ARRAY(SELECT pg_get_indexdef(i.indexrelid, key, true)
                         FROM generate_series(1, i.indnkeyatts) AS key)
       END AS expressions
  FROM pg_index AS i
  JOIN pg_class AS c ON c.oid = i.indexrelid
  JOIN pg_am AS m ON m.oid = c.relam
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('i', 'I')
   AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')
 ORDER BY i.indrelid, c.relname

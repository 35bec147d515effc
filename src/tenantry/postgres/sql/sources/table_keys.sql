-- The columns of each unique index of the table $1.$2 that holds for all of its rows at every instant.
SELECT array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
   AND i.indpred IS NULL AND i.indexprs IS NULL
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
   AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])
 WHERE n.nspname = $1 AND c.relname = $2
 GROUP BY i.indexrelid

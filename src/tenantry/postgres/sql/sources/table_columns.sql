-- The columns of the table $1.$2, if the login may see them. None: there is no such table.
SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type, a.attnotnull AS not_null
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')
 ORDER BY a.attnum

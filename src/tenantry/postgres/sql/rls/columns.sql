SELECT a.attrelid::int8 AS relation,
       a.attnum::int4 AS number,
       a.attname::text AS name,
       format_type(a.atttypid, a.atttypmod) AS type,
       a.atttypid::int8 AS type_oid,
       a.attnotnull AS not_null,
       pg_get_expr(d.adbin, d.adrelid) AS default,
       a.attidentity::text AS identity,
       a.attgenerated::text AS generated,
       a.attacl::text[] AS acl
  FROM pg_attribute AS a
  JOIN pg_class AS c ON c.oid = a.attrelid
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
  LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
   AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')
 ORDER BY a.attrelid, a.attnum

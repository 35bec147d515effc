-- Rows and arrays are left out: of each table there would be two.
SELECT t.oid::int8 AS oid, t.typname::text AS name
  FROM pg_type AS t
 WHERE t.typtype IN ('b', 'e', 'd', 'r') AND t.typcategory <> 'A'

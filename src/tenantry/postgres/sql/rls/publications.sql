SELECT p.pubname::text AS name,
       pg_get_userbyid(p.pubowner)::text AS owner,
       p.puballtables AS all_tables,
       p.pubviaroot AS via_root,
       c.oid::int8 AS relation,
       t.rowfilter AS filter
  FROM pg_publication AS p
  LEFT JOIN pg_publication_tables AS t ON t.pubname = p.pubname
  LEFT JOIN pg_namespace AS n ON n.nspname = t.schemaname
  LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
 ORDER BY p.pubname, c.oid

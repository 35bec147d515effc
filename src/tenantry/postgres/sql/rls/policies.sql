SELECT p.oid::int8 AS oid,
       p.polrelid::int8 AS relation,
       p.polname::text AS name,
       p.polpermissive AS permissive,
       p.polcmd::text AS command,
       p.polroles::int8[] AS roles,
       pg_get_expr(p.polqual, p.polrelid) AS using,
       pg_get_expr(p.polwithcheck, p.polrelid) AS check,
       p.polqual::text AS using_tree,
       p.polwithcheck::text AS check_tree
  FROM pg_policy AS p
 ORDER BY p.polrelid, p.polname

SELECT p.oid::int8 AS oid,
       p.polrelid::int8 AS relation,
       p.polname::text AS name,
       p.polpermissive AS permissive,
       p.polcmd::text AS command,
       p.polroles::int8[] AS roles,
       pg_get_expr(p.polqual, p.polrelid) AS using,
       pg_get_expr(p.polwithcheck, p.polrelid) AS check,
       -- without the places in the text that it was made from: equal policies are then equal
       regexp_replace(p.polqual::text, ':location -?\d+', ':location -1', 'g') AS using_tree,
       regexp_replace(p.polwithcheck::text, ':location -?\d+', ':location -1', 'g') AS check_tree
  FROM pg_policy AS p
 ORDER BY p.polrelid, p.polname

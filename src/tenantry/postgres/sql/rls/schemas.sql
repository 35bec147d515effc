SELECT n.oid::int8 AS oid,
       n.nspname::text AS name,
       pg_get_userbyid(n.nspowner)::text AS owner,
       coalesce(n.nspacl, acldefault('n', n.nspowner))::text[] AS acl
  FROM pg_namespace AS n
 WHERE n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')

SELECT pg_get_userbyid(m.lomowner)::text AS owner,
       coalesce(m.lomacl, acldefault('L', m.lomowner))::text[] AS acl,
       count(*)::int8 AS count
  FROM pg_largeobject_metadata AS m
 GROUP BY m.lomowner, m.lomacl

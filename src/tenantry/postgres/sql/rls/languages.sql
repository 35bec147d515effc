SELECT l.lanname::text AS name,
       pg_get_userbyid(l.lanowner)::text AS owner,
       l.lanpltrusted AS trusted,
       coalesce(l.lanacl, acldefault('l', l.lanowner))::text[] AS acl
  FROM pg_language AS l

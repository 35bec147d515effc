SELECT pg_get_userbyid(d.defaclrole)::text AS owner,
       n.nspname::text AS schema,
       d.defaclobjtype::text AS kind,
       d.defaclacl::text[] AS acl
  FROM pg_default_acl AS d
  LEFT JOIN pg_namespace AS n ON n.oid = d.defaclnamespace

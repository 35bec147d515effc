SELECT s.srvname::text AS name,
       pg_get_userbyid(s.srvowner)::text AS owner,
       w.fdwname::text AS wrapper,
       coalesce(s.srvacl, acldefault('S', s.srvowner))::text[] AS acl,
       ARRAY(SELECT m.usename::text FROM pg_user_mappings AS m WHERE m.srvid = s.oid) AS mapped
  FROM pg_foreign_server AS s
  JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw

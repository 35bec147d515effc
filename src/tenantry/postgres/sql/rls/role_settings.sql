SELECT r.rolname::text AS role,
       s.setdatabase <> 0 AS here,
       split_part(each, '=', 1) AS name,
       substr(each, strpos(each, '=') + 1) AS value
  FROM pg_db_role_setting AS s
 CROSS JOIN LATERAL unnest(s.setconfig) AS each
  LEFT JOIN pg_roles AS r ON r.oid = s.setrole
 WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))

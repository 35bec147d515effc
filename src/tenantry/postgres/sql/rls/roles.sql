SELECT r.oid::int8 AS oid,
       r.rolname::text AS name,
       r.rolsuper AS superuser,
       r.rolbypassrls AS bypasses_rls,
       r.rolcreaterole AS creates_roles,
       r.rolcreatedb AS creates_databases,
       r.rolreplication AS replicates,
       r.rolcanlogin AS can_login,
       r.rolinherit AS inherits,
       starts_with(r.rolname, 'pg_') AS predefined -- no other role may be called so
  FROM pg_roles AS r

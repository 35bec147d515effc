SELECT p.oid::int8 AS oid,
       p.proname::text AS name,
       p.provolatile::text AS volatility,
       p.proleakproof AS leakproof,
       p.proisstrict AS strict,
       -- who may run it where that is not everybody
       CASE WHEN p.proacl IS NOT NULL THEN pg_get_function_identity_arguments(p.oid) ELSE '' END AS arguments,
       p.proacl::text[] AS acl
  FROM pg_proc AS p
 WHERE p.pronamespace = 'pg_catalog'::regnamespace

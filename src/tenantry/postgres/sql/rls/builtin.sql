SELECT p.oid::int8 AS oid,
       p.proname::text AS name,
       p.provolatile::text AS volatility,
       p.proleakproof AS leakproof,
       p.proisstrict AS strict
  FROM pg_proc AS p
 WHERE p.pronamespace = 'pg_catalog'::regnamespace

-- Whether all functions of a name are leakproof: in a plan's text overloads cannot be told apart.
SELECT p.proname::text AS name, bool_and(p.proleakproof) AS leakproof
  FROM pg_catalog.pg_proc AS p
 WHERE p.proname = ANY ($1::text[])
 GROUP BY p.proname

-- Those of these casts that run no function: to the same type, to a domain's own type, or binary coercible.
SELECT w.source, w.target
  FROM unnest($1::text[], $2::text[]) AS w(source, target)
  JOIN pg_catalog.pg_type AS s ON s.oid = to_regtype(w.source)
  JOIN pg_catalog.pg_type AS t ON t.oid = to_regtype(w.target)
 WHERE t.oid IN (s.oid, s.typbasetype)
    OR EXISTS (SELECT FROM pg_catalog.pg_cast AS c
                WHERE c.castsource IN (s.oid, nullif(s.typbasetype, 0))
                  AND c.casttarget = t.oid
                  AND c.castmethod = 'b')

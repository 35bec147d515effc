-- What rows must pass: the literals in it are tried.
SELECT c.conrelid::int8 AS oid, array_agg(pg_get_constraintdef(c.oid) ORDER BY c.conname) AS checks
  FROM pg_constraint AS c
 WHERE c.contype = 'c' AND c.conrelid <> 0
 GROUP BY c.conrelid

-- Types of the database's own of which a value must be made: what is below a domain, and what an enum may be.
WITH RECURSIVE below AS (
    SELECT t.oid, t.oid AS at, t.typtype, t.typbasetype, t.typtypmod
      FROM pg_type AS t
     WHERE t.typtype = 'd'
    UNION ALL
    SELECT b.oid, t.oid, t.typtype, t.typbasetype, t.typtypmod
      FROM below AS b
      JOIN pg_type AS t ON t.oid = b.typbasetype
     WHERE b.typtype = 'd'
)
SELECT b.oid::int8 AS oid,
       format_type(b.at, NULL) AS base,
       '{}'::text[] AS labels
  FROM below AS b
 WHERE b.typtype <> 'd'
UNION ALL
SELECT e.enumtypid::int8,
       '',
       array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
  FROM pg_enum AS e
 GROUP BY e.enumtypid

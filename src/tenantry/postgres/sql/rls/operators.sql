SELECT o.oid::int8 AS oid, o.oprname::text AS name, o.oprcode::oid::int8 AS function
  FROM pg_operator AS o

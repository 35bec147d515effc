SELECT t.oid::int8 AS oid,
       t.tgrelid::int8 AS relation,
       t.tgname::text AS name,
       t.tgfoid::int8 AS function,
       t.tgtype::int4 AS type,
       t.tgenabled::text AS enabled
  FROM pg_trigger AS t
 WHERE NOT t.tgisinternal
 ORDER BY t.tgrelid, t.tgname

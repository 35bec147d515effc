-- The operators of a name that a value of a type can be the left side of. $1: types as SQL writes them; $2: names.
SELECT w.type,
       w.operator,
       o.oprright::regtype::text AS "right",
       o.oprleft = o.oprright AS same,
       format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) AS function,
       p.proleakproof AS leakproof
  FROM unnest($1::text[], $2::text[]) AS w(type, operator)
  JOIN pg_catalog.pg_type AS t ON t.oid = to_regtype(w.type)
  JOIN pg_catalog.pg_operator AS o ON o.oprname = w.operator
  JOIN pg_catalog.pg_proc AS p ON p.oid = o.oprcode
  JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
 WHERE o.oprleft = t.oid
    OR o.oprleft = nullif(t.typbasetype, 0)
    OR o.oprleft = ANY (CASE -- the polymorphic types that take it
            WHEN t.typtype = 'e' THEN ARRAY['anyenum'::regtype]
            WHEN t.typtype = 'r' THEN ARRAY['anyrange'::regtype]
            WHEN t.typtype = 'm' THEN ARRAY['anymultirange'::regtype]
            WHEN t.typtype = 'c' THEN ARRAY['record'::regtype]
            WHEN t.typcategory = 'A' THEN ARRAY['anyarray'::regtype, 'anycompatiblearray'::regtype]
            ELSE ARRAY[]::regtype[]
       END)

SELECT w.oid::int8 AS oid,
       w.ev_class::int8 AS relation,
       w.rulename::text AS name,
       w.ev_type::text AS event,
       w.is_instead AS instead,
       w.ev_enabled::text AS enabled,
       ARRAY(SELECT DISTINCT d.refobjid::int8
               FROM pg_depend AS d
              WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class) AS reads
  FROM pg_rewrite AS w
  JOIN pg_class AS c ON c.oid = w.ev_class
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE w.rulename <> '_RETURN'
   AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')
 ORDER BY w.ev_class, w.rulename

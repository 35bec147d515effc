WITH extensions AS (
    SELECT d.objid AS oid, e.extname
      FROM pg_depend AS d
      JOIN pg_extension AS e ON e.oid = d.refobjid
     WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
), reads AS ( -- known only for bodies that the server has parsed: BEGIN ATOMIC and RETURN
    SELECT d.objid AS oid, array_agg(DISTINCT d.refobjid::int8) AS reads
      FROM pg_depend AS d
     WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass
     GROUP BY d.objid
)
SELECT p.oid::int8 AS oid,
       n.nspname::text AS schema,
       p.proname::text AS name,
       pg_get_function_identity_arguments(p.oid) AS arguments,
       pg_get_userbyid(p.proowner)::text AS owner,
       l.lanname::text AS language,
       coalesce(pg_get_function_result(p.oid), '') AS returns,
       p.prokind::text AS kind,
       p.prosecdef AS security_definer,
       p.proleakproof AS leakproof,
       p.proisstrict AS strict,
       p.provolatile::text AS volatility,
       coalesce(p.proconfig, '{}') AS settings,
       CASE WHEN l.lanname IN ('c', 'internal') THEN ''
            ELSE coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) END AS source,
       coalesce(p.proacl, acldefault('f', p.proowner))::text[] AS acl,
       coalesce(e.extname::text, '') AS extension,
       coalesce(r.reads, '{}') AS reads
  FROM pg_proc AS p
  JOIN pg_namespace AS n ON n.oid = p.pronamespace
  JOIN pg_language AS l ON l.oid = p.prolang
  LEFT JOIN extensions AS e ON e.oid = p.oid
  LEFT JOIN reads AS r ON r.oid = p.oid
 WHERE n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_')

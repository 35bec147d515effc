-- By which operators an index of each class is searched, and whether they keep what they see to themselves.
SELECT o.oid::int8 AS oid,
       o.opcname::text AS name,
       coalesce(bool_and(p.proleakproof), false) AS leakproof,
       coalesce(bool_and(p.proleakproof) FILTER (WHERE q.oprname = '='), false) AS equality_leakproof
  FROM pg_opclass AS o
  LEFT JOIN pg_amop AS a ON a.amopfamily = o.opcfamily AND a.amoppurpose = 's'
                        AND a.amoplefttype = o.opcintype AND a.amoprighttype = o.opcintype
  LEFT JOIN pg_operator AS q ON q.oid = a.amopopr
  LEFT JOIN pg_proc AS p ON p.oid = q.oprcode
 GROUP BY o.oid, o.opcname

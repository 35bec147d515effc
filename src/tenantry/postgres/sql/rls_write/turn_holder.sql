-- The session that has the turn. $1: the key of the advisory lock, whose halves are classid and objid.
SELECT l.pid,
       coalesce(a.usename, '') AS "user",
       coalesce(a.application_name, '') AS application,
       coalesce(a.state, '') AS state,
       coalesce(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.backend_start)), 0)::float8 AS open_for,
       left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 160) AS query,
       'the turn' AS holds
  FROM pg_catalog.pg_locks AS l
  LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.locktype = 'advisory'
   AND l.granted
   AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
   AND (l.classid::bigint << 32 | l.objid::bigint) = $1
   AND l.objsubid = 1

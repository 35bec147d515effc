-- The open transactions of this database: an index that is built CONCURRENTLY waits for those older than it.
SELECT a.pid,
       coalesce(a.usename, '') AS "user",
       coalesce(a.application_name, '') AS application,
       coalesce(a.state, '') AS state,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS open_for,
       left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 160) AS query,
       '' AS holds
  FROM pg_catalog.pg_stat_activity AS a
 WHERE a.datname = current_database()
   AND a.xact_start IS NOT NULL
   AND a.pid <> pg_backend_pid()
 ORDER BY open_for DESC
 LIMIT 10

-- Who holds a lock on one of these relations, in this database, and is not us. $1: names as SQL writes them.
SELECT l.pid,
       coalesce(a.usename, '') AS "user",
       coalesce(a.application_name, '') AS application,
       coalesce(a.state, '') AS state,
       coalesce(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)), 0)::float8 AS open_for,
       left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 160) AS query,
       format('%s on %s', l.mode, l.relation::regclass) AS holds
  FROM pg_catalog.pg_locks AS l
  LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
  LEFT JOIN pg_catalog.pg_prepared_xacts AS p ON l.virtualtransaction = '-1/' || p.transaction::text
 WHERE l.locktype = 'relation'
   AND l.granted
   AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
   AND l.relation = ANY (SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name)
   AND l.pid IS DISTINCT FROM pg_backend_pid()
 ORDER BY open_for DESC
 LIMIT 10

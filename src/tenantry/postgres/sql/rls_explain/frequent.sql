-- Where most time went: what these roles asked of this database, in the words that the server keeps. $1: names
-- of roles; $2: how many. Bodies of functions (not toplevel) are planned where they are called. A query that was
-- first seen when we explained it is kept in our words, with PREPARE before its own.
SELECT regexp_replace(query, '^PREPARE tenantry_explained AS ', '') AS query
  FROM pg_stat_statements
 WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
   AND userid = ANY (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = ANY ($1::text[]))
   AND toplevel
   AND query ~* '^\s*(prepare tenantry_explained as\s+)?(select|insert|update|delete|merge|with|values)\M'
 ORDER BY total_exec_time DESC
 LIMIT $2

-- What the server says of itself: version, settings that keep accepted work, its clock, how many may connect.
SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit, current_setting('full_page_writes') AS full_page_writes,
       current_setting('max_connections')::integer AS max_connections, current_user AS login, current_database() AS database,
       pg_is_in_recovery() AS standby, clock_timestamp() AS now

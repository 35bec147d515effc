SELECT current_setting('server_version_num')::int AS version,
       current_setting('server_version') AS version_text,
       d.datname::text AS database,
       pg_get_userbyid(d.datdba)::text AS owner,
       session_user::text AS login,
       coalesce(d.datacl, acldefault('d', d.datdba))::text[] AS acl,
       -- one may be unknown to this version, and then is not there
       (SELECT coalesce(jsonb_object_agg(s.name, s.setting), '{}')
          FROM pg_settings AS s
         WHERE s.name IN ('row_security', 'lo_compat_privileges', 'createrole_self_grant', 'wal_level',
                          'max_wal_senders', 'log_statement', 'log_parameter_max_length_on_error',
                          'session_preload_libraries', 'shared_preload_libraries'))::text AS settings,
       (SELECT coalesce(jsonb_object_agg(e.extname, e.extversion), '{}') FROM pg_extension AS e)::text AS extensions
  FROM pg_database AS d
 WHERE d.datname = current_database()

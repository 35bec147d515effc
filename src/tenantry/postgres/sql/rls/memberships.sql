-- Whether a membership inherits and may be SET is its own since version 16; asked by name, for 15 lacks it.
SELECT g.rolname::text AS role,
       r.rolname::text AS member,
       coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit) AS inherits,
       coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) AS may_set,
       m.admin_option AS is_admin
  FROM pg_auth_members AS m
  JOIN pg_roles AS g ON g.oid = m.roleid
  JOIN pg_roles AS r ON r.oid = m.member
UNION ALL
-- The owner of a database is a member of pg_database_owner without a row that says so.
SELECT 'pg_database_owner', pg_get_userbyid(d.datdba)::text, true, false, false
  FROM pg_database AS d
 WHERE d.datname = current_database()

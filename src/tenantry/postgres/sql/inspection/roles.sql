-- The two logins: what they may do beyond what they need.
SELECT r.rolname AS login, r.rolsuper AS superuser, r.rolbypassrls AS bypasses_policies, r.rolcreaterole AS creates_roles,
       r.rolcanlogin AS can_login,
       EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid) AS is_member,
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'tenantry' AND c.relowner = r.oid) AS owns_tables
  FROM pg_catalog.pg_roles r WHERE r.rolname IN ('tenantry_engine', 'tenantry_tenant') ORDER BY r.rolname

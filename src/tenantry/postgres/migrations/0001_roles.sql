-- Who may connect, and where everything lives. Owner of the schema: whoever runs this.
--
-- tenantry_engine serves all tenants; tenantry_tenant sees one, bound for its transaction. Neither owns
-- anything, neither passes row security by attribute, neither is a member of the other.

-- Roles belong to the whole server, not to this database, so another database's migration may be making them
-- at this moment: hence the handler beside the test.
DO $$
DECLARE
    login     text;
    attributes constant text := 'LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT';
    may_create boolean;
BEGIN
    SELECT rolsuper OR rolcreaterole INTO may_create FROM pg_catalog.pg_roles WHERE rolname = current_user;
    FOREACH login IN ARRAY ARRAY['tenantry_engine', 'tenantry_tenant'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = login);
        IF NOT may_create THEN
            RAISE EXCEPTION 'the role % does not exist, and % may not create roles', login, current_user
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('As a superuser, run: CREATE ROLE tenantry_engine %s; '
                                    'CREATE ROLE tenantry_tenant %s; then migrate again.', attributes, attributes);
        END IF;
        BEGIN
            EXECUTE format('CREATE ROLE %I %s', login, attributes);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- made by the other migration: the same statement
        END;
    END LOOP;
END
$$;

-- A role that was there before must be as powerless as one that we make: isolation rests on it.
DO $$
DECLARE
    strong text;
BEGIN
    SELECT string_agg(rolname, ', ' ORDER BY rolname) INTO strong
      FROM pg_catalog.pg_roles
     WHERE rolname IN ('tenantry_engine', 'tenantry_tenant')
       AND (rolsuper OR rolbypassrls OR rolcreaterole OR NOT rolcanlogin);
    IF strong IS NOT NULL THEN
        RAISE EXCEPTION 'these roles have attributes that would break isolation, or may not log in: %', strong
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'For each, run: ALTER ROLE … LOGIN NOSUPERUSER NOCREATEROLE NOBYPASSRLS;';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m
                 JOIN pg_catalog.pg_roles AS g ON g.oid = m.roleid
                 JOIN pg_catalog.pg_roles AS r ON r.oid = m.member
                WHERE r.rolname IN ('tenantry_engine', 'tenantry_tenant')) THEN
        RAISE EXCEPTION 'tenantry_engine or tenantry_tenant is a member of another role'
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'Run REVOKE … FROM … for each membership: neither may borrow the rights of another role.';
    END IF;
END
$$;

-- The operator may have made it, for a login that may not create schemas.
DO $$
BEGIN
    IF to_regnamespace('tenantry') IS NULL THEN
        CREATE SCHEMA tenantry;
    END IF;
END
$$;
REVOKE ALL ON SCHEMA tenantry FROM PUBLIC;
GRANT USAGE ON SCHEMA tenantry TO tenantry_engine, tenantry_tenant;

CREATE TABLE tenantry.migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    sha256     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON tenantry.migrations FROM PUBLIC;
GRANT SELECT ON tenantry.migrations TO tenantry_engine; -- a node asks, before it serves, whether it may

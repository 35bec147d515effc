-- Work that is accepted before there is room for it in line: bulk sets, and jobs of callers' own transactions.

-- Whoever may call tenantry.submit_later. The operator grants it to the application's role.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tenantry_submitter') THEN
        CREATE ROLE tenantry_submitter NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        NULL; -- another database's migration made it at this moment
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role tenantry_submitter does not exist, and % may not create roles', current_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'As a superuser, run: CREATE ROLE tenantry_submitter NOLOGIN; then migrate again.';
END
$$;
GRANT USAGE ON SCHEMA tenantry TO tenantry_submitter;

-- Submit inside the caller's own transaction: it commits and rolls back with it, and takes no lock that another
-- submit waits for, however long that transaction lasts. Runs as the owner, hence the pinned search_path; the row
-- policy still holds for the owner, so the tenant is bound for the insert and the caller's binding put back.
CREATE FUNCTION tenantry.submit_later(
    p_tenant text, p_target text, p_payload bytea, p_class smallint DEFAULT 0, p_id uuid DEFAULT gen_random_uuid(),
    p_content_type text DEFAULT 'application/json', p_delay double precision DEFAULT 0, p_cost real DEFAULT NULL,
    p_bucket smallint DEFAULT -1
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller constant text := NULLIF(current_setting('tenantry.tenant_id', true), '');
BEGIN
    IF caller IS NOT NULL AND caller <> p_tenant THEN
        RAISE EXCEPTION 'this transaction is bound to another tenant than %', p_tenant USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (SELECT FROM tenantry.tenants WHERE tenant_id = p_tenant) THEN
        RAISE EXCEPTION 'unknown tenant %', p_tenant USING ERRCODE = 'invalid_parameter_value',
            HINT = 'tenantry tenants list shows those that exist.';
    END IF;
    IF p_target = '' OR p_class NOT IN (0, 1) OR p_bucket NOT BETWEEN -1 AND 63 OR p_delay NOT BETWEEN 0 AND 31622400
       OR p_cost <= 0 OR octet_length(p_payload) > 1048576 THEN
        RAISE EXCEPTION 'submit_later: target, class (0 live, 1 background), delay (0 to 366 days), cost (> 0) or payload (1 MiB) out of range'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM set_config('tenantry.tenant_id', p_tenant, true);
    INSERT INTO tenantry.stored (tenant_id, job_id, target, job_class, bucket, payload, content_type, due_at, cost)
    VALUES (p_tenant, p_id, p_target, p_class, p_bucket, p_payload, p_content_type,
            CASE WHEN p_delay > 0 THEN clock_timestamp() + make_interval(secs => p_delay) END, p_cost);
    PERFORM set_config('tenantry.tenant_id', coalesce(caller, ''), true);
    RETURN p_id;
END
$$;

DO $$
BEGIN
    EXECUTE format('CREATE POLICY inbox ON tenantry.stored FOR INSERT TO %I '
                   'WITH CHECK (tenant_id = NULLIF(current_setting(''tenantry.tenant_id'', true), ''''))', current_user);
END
$$;

-- Store a bulk set once.
CREATE FUNCTION tenantry.submit_bulk(
    p_tenant text, p_bulk uuid, p_targets text[], p_classes smallint[], p_buckets smallint[], p_ids uuid[],
    p_payloads bytea[], p_types text[], p_delays double precision[], p_costs real[]
) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    stored_at timestamptz;
BEGIN
    PERFORM tenantry.bind(p_tenant);
    INSERT INTO tenantry.bulk_sets (bulk_id, tenant_id, total) VALUES (p_bulk, p_tenant, cardinality(p_ids))
    RETURNING created_at INTO stored_at;
    INSERT INTO tenantry.stored (tenant_id, bulk_id, job_id, target, job_class, bucket, payload, content_type, due_at, cost)
    SELECT p_tenant, p_bulk, g.job_id, g.target, g.job_class, g.bucket, g.payload, g.content_type,
           CASE WHEN g.delay > 0 THEN clock_timestamp() + make_interval(secs => g.delay) END, g.cost
      FROM unnest(p_targets, p_classes, p_buckets, p_ids, p_payloads, p_types, p_delays, p_costs) WITH ORDINALITY
           g (target, job_class, bucket, job_id, payload, content_type, delay, cost, n)
     ORDER BY g.n;
    RETURN stored_at;
END
$$;

-- Move stored work of one tenant into line, as far as its bound leaves room; at most p_limit jobs. Inbox jobs come
-- first, and those over the bound are dead-lettered: their transaction was told "accepted" and must end (law K1).
CREATE FUNCTION tenantry.feed(p_tenant text, p_bound bigint, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    room  bigint;
    moved integer := 0;
    taken integer;
    inbox boolean;
BEGIN
    room := least(p_limit, p_bound - tenantry.reserve(p_tenant, 0, NULL));
    FOREACH inbox IN ARRAY ARRAY[true, false] LOOP
        room := greatest(0, coalesce(room, p_limit));
        CONTINUE WHEN room = 0;
        WITH picked AS (
            SELECT stored_id FROM tenantry.stored
             WHERE tenant_id = p_tenant AND (bulk_id IS NULL) = inbox ORDER BY stored_id LIMIT room FOR UPDATE
        ), gone AS (
            DELETE FROM tenantry.stored s USING picked p WHERE s.stored_id = p.stored_id RETURNING s.*
        ), counted AS (
            SELECT count(*)::integer AS n, array_agg(target ORDER BY stored_id) AS targets,
                   array_agg(job_class ORDER BY stored_id) AS classes, array_agg(bucket ORDER BY stored_id) AS buckets,
                   array_agg(job_id ORDER BY stored_id) AS ids, array_agg(payload ORDER BY stored_id) AS payloads,
                   array_agg(content_type ORDER BY stored_id) AS types, array_agg(due_at ORDER BY stored_id) AS due,
                   array_agg(cost ORDER BY stored_id) AS costs, array_agg(bulk_id ORDER BY stored_id) AS bulks
              FROM gone
        )
        SELECT n, CASE WHEN n > 0 THEN tenantry.place_stored(p_tenant, n, targets, classes, buckets, ids, payloads, types,
                                                             due, costs, bulks) END
          INTO taken FROM counted;
        room := room - taken;
        moved := moved + taken;
    END LOOP;
    IF p_bound IS NOT NULL AND room = 0 AND moved < p_limit THEN
        WITH picked AS (
            SELECT stored_id FROM tenantry.stored WHERE tenant_id = p_tenant AND bulk_id IS NULL
             ORDER BY stored_id LIMIT p_limit - moved FOR UPDATE
        ), gone AS (
            DELETE FROM tenantry.stored s USING picked p WHERE s.stored_id = p.stored_id RETURNING s.*
        ), dead AS (
            INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, submitted_at,
                                               attempts, reason)
            SELECT job_id, tenant_id, target, job_class, payload, content_type, submitted_at, 0, 'over bound' FROM gone
            RETURNING job_id
        ), ended AS (
            INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, ended_at)
            SELECT job_id, p_tenant, 2, 0, clock_timestamp() FROM dead RETURNING 1
        )
        SELECT moved + count(*)::integer INTO moved FROM ended;
    END IF;
    RETURN moved;
END
$$;

CREATE FUNCTION tenantry.place_stored(
    p_tenant text, p_count integer, p_targets text[], p_classes smallint[], p_buckets smallint[], p_ids uuid[],
    p_payloads bytea[], p_types text[], p_due timestamptz[], p_costs real[], p_bulks uuid[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tenantry.reserve(p_tenant, p_count, NULL);
    PERFORM tenantry.append(p_tenant, tenantry.flows_for(p_tenant, p_targets, p_classes, p_buckets), p_ids, p_payloads,
                            p_types, p_due, p_costs, p_bulks, array_fill(false, ARRAY[p_count]));
END
$$;

REVOKE ALL ON FUNCTION tenantry.submit_later, tenantry.submit_bulk, tenantry.feed, tenantry.place_stored FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.submit_later TO tenantry_submitter;
GRANT EXECUTE ON FUNCTION tenantry.submit_bulk TO tenantry_tenant;
GRANT EXECUTE ON FUNCTION tenantry.feed, tenantry.place_stored TO tenantry_engine;

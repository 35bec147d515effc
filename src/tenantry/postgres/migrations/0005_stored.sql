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
    -- The limits of queue/admission.py, again: whoever calls this from SQL passes nothing of ours. NULL and NaN fail too.
    IF (octet_length(p_target) BETWEEN 1 AND 2048
        AND p_class IN (0, 1)
        AND p_bucket BETWEEN -1 AND 63
        AND p_delay BETWEEN 0 AND 31622400
        AND (p_cost IS NULL OR (p_cost > 0 AND p_cost <= 86400))
        AND octet_length(p_payload) <= 1048576
        AND p_content_type ~ '^[ -~]{1,255}$'
        AND p_id IS NOT NULL) IS NOT TRUE THEN
        RAISE EXCEPTION 'submit_later: a value is out of range'
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Accepted: target of 1 to 2048 bytes, class 0 (live) or 1 (background), delay of 0 to 31622400 s, '
                         'cost above 0 and at most 86400 s, payload of at most 1048576 bytes, content type of 1 to 255 '
                         'printable ASCII characters.';
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

-- Store a bulk set once. NULL when the tenant would have more than p_most jobs stored; then `stored` is how many it has.
CREATE FUNCTION tenantry.submit_bulk(
    p_tenant text, p_most bigint, p_bulk uuid, p_targets text[], p_classes smallint[], p_buckets smallint[], p_ids uuid[],
    p_payloads bytea[], p_types text[], p_delays double precision[], p_costs real[],
    OUT stored_at timestamptz, OUT stored bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tenantry.bind(p_tenant);
    -- One set of a tenant after the other, so that the count is exact; its other submits are not held up.
    PERFORM pg_advisory_xact_lock(1937010533, hashtext(p_tenant));
    SELECT count(*) INTO stored
      FROM (SELECT FROM tenantry.stored s WHERE s.tenant_id = p_tenant LIMIT p_most) counted;
    IF stored + cardinality(p_ids) > p_most THEN RETURN; END IF;
    INSERT INTO tenantry.bulk_sets (bulk_id, tenant_id, total) VALUES (p_bulk, p_tenant, cardinality(p_ids))
    RETURNING created_at INTO stored_at;
    INSERT INTO tenantry.stored (tenant_id, bulk_id, job_id, target, job_class, bucket, payload, content_type, due_at, cost)
    SELECT p_tenant, p_bulk, g.job_id, g.target, g.job_class, g.bucket, g.payload, g.content_type,
           CASE WHEN g.delay > 0 THEN clock_timestamp() + make_interval(secs => g.delay) END, g.cost
      FROM unnest(p_targets, p_classes, p_buckets, p_ids, p_payloads, p_types, p_delays, p_costs) WITH ORDINALITY
           g (target, job_class, bucket, job_id, payload, content_type, delay, cost, n)
     ORDER BY g.n;
END
$$;

-- Into line, all or none. Raises unique_violation for an inbox job whose id somebody used before.
CREATE FUNCTION tenantry.place_stored(p_tenant text, p_rows tenantry.stored[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(p_rows) r
                WHERE r.bulk_id IS NULL
                  AND (EXISTS (SELECT FROM tenantry.outcomes o WHERE o.job_id = r.job_id)
                       OR EXISTS (SELECT FROM tenantry.dead_letters d WHERE d.job_id = r.job_id))) THEN
        RAISE EXCEPTION 'a job of this id has ended already' USING ERRCODE = 'unique_violation';
    END IF;
    PERFORM tenantry.reserve(p_tenant, cardinality(p_rows), NULL);
    PERFORM tenantry.append(p_tenant, tenantry.flows_for(p_tenant, g.targets, g.classes, g.buckets), g.ids, g.payloads,
                            g.types, g.due, g.costs, g.bulks, array_fill(false, ARRAY[cardinality(p_rows)]))
       FROM (SELECT array_agg(target ORDER BY stored_id) AS targets, array_agg(job_class ORDER BY stored_id) AS classes,
                    array_agg(bucket ORDER BY stored_id) AS buckets, array_agg(job_id ORDER BY stored_id) AS ids,
                    array_agg(payload ORDER BY stored_id) AS payloads, array_agg(content_type ORDER BY stored_id) AS types,
                    array_agg(due_at ORDER BY stored_id) AS due, array_agg(cost ORDER BY stored_id) AS costs,
                    array_agg(bulk_id ORDER BY stored_id) AS bulks
               FROM unnest(p_rows)) g;
END
$$;

-- End stored jobs as dead letters. They were accepted, so they must end (law K1); one whose id is another job's ends
-- under a new id, which is answered.
CREATE FUNCTION tenantry.bury_stored(p_tenant text, p_rows tenantry.stored[], p_reason text) RETURNS uuid[]
LANGUAGE sql AS $$
    WITH named AS (
        SELECT r.*, CASE WHEN EXISTS (SELECT FROM tenantry.jobs j WHERE j.job_id = r.job_id)
                           OR EXISTS (SELECT FROM tenantry.outcomes o WHERE o.job_id = r.job_id)
                           OR EXISTS (SELECT FROM tenantry.dead_letters d WHERE d.job_id = r.job_id)
                         THEN gen_random_uuid() ELSE r.job_id END AS own_id
          FROM unnest(p_rows) r
    ), dead AS (
        INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, submitted_at,
                                           attempts, reason)
        SELECT own_id, tenant_id, target, job_class, payload, content_type, submitted_at, 0,
               p_reason || CASE WHEN own_id <> job_id THEN format('; it was submitted as %s', job_id) ELSE '' END
          FROM named
        RETURNING job_id
    ), ended AS (
        INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
        SELECT own_id, tenant_id, 2, 0, bulk_id, clock_timestamp() FROM named
    )
    SELECT coalesce(array_agg(job_id), '{}') FROM dead
$$;

-- Take stored rows of one tenant out, the oldest first: at most p_most, and no more once p_bytes are passed.
CREATE FUNCTION tenantry.take_stored(p_tenant text, p_inbox boolean, p_most bigint, p_bytes bigint)
RETURNS tenantry.stored[] LANGUAGE sql AS $$
    WITH near AS (
        SELECT stored_id, octet_length(payload) AS bytes FROM tenantry.stored
         WHERE tenant_id = p_tenant AND (bulk_id IS NULL) = p_inbox ORDER BY stored_id LIMIT p_most FOR UPDATE
    ), summed AS (
        SELECT stored_id, sum(bytes) OVER (ORDER BY stored_id) - bytes AS before FROM near
    ), gone AS (
        DELETE FROM tenantry.stored s USING summed n WHERE s.stored_id = n.stored_id AND n.before < p_bytes RETURNING s AS taken
    )
    SELECT coalesce(array_agg(taken ORDER BY (taken).stored_id), '{}') FROM gone
$$;

-- Move stored work of one tenant into line, as far as its bound leaves room: at most p_limit jobs, and about p_bytes of
-- payload. Inbox jobs come first. What is over the bound there, and what cannot be placed, is dead-lettered, and
-- answered in `died` with its reasons; `moved` counts both. One bad row holds up nothing.
CREATE FUNCTION tenantry.feed(
    p_tenant text, p_bound bigint, p_limit integer, p_bytes bigint, OUT moved integer, OUT died uuid[], OUT reasons text[]
) LANGUAGE plpgsql AS $$
DECLARE
    unended bigint;
    inbox   boolean;
    taken   tenantry.stored[];
    one     tenantry.stored;
    buried  uuid[];
BEGIN
    moved := 0; died := '{}'; reasons := '{}';
    unended := tenantry.reserve(p_tenant, 0, NULL); -- and its lock: feeders of one tenant go one after the other
    FOREACH inbox IN ARRAY ARRAY[true, false] LOOP
        taken := tenantry.take_stored(p_tenant, inbox, greatest(0, least(p_limit - moved, p_bound - unended)), p_bytes);
        moved := moved + cardinality(taken);
        unended := unended + cardinality(taken);
        CONTINUE WHEN cardinality(taken) = 0;
        BEGIN
            PERFORM tenantry.place_stored(p_tenant, taken);
        EXCEPTION WHEN integrity_constraint_violation OR data_exception OR program_limit_exceeded THEN
            FOREACH one IN ARRAY taken LOOP
                BEGIN
                    PERFORM tenantry.place_stored(p_tenant, ARRAY[one]);
                EXCEPTION WHEN integrity_constraint_violation OR data_exception OR program_limit_exceeded THEN
                    buried := tenantry.bury_stored(p_tenant, ARRAY[one], 'cannot be queued: ' || SQLERRM);
                    died := died || buried;
                    reasons := reasons || ('cannot be queued: ' || SQLERRM);
                END;
            END LOOP;
        END;
    END LOOP;
    IF unended >= p_bound AND moved < p_limit THEN
        buried := tenantry.bury_stored(p_tenant, tenantry.take_stored(p_tenant, true, p_limit - moved, p_bytes), 'over bound');
        moved := moved + cardinality(buried);
        died := died || buried;
        reasons := reasons || array_fill('over bound'::text, ARRAY[cardinality(buried)]);
    END IF;
END
$$;

-- Drop ends older than keep_days days; what they counted for is kept on their bulk sets until those are over. One
-- transaction: an end is counted in its row or on its set, never in both.
CREATE FUNCTION tenantry.tidy_outcomes(p_keep_days integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    -- As roll_outcomes reckons, by the same stamp of this transaction.
    kept_from constant timestamptz := ((now() AT TIME ZONE 'UTC')::date - p_keep_days)::timestamp AT TIME ZONE 'UTC';
BEGIN
    PERFORM pg_advisory_xact_lock(8391162081467360889); -- as roll_outcomes does: one at a time
    WITH old AS (
        SELECT bulk_id, count(*) FILTER (WHERE state = 1) AS delivered, count(*) FILTER (WHERE state = 2) AS dead,
               count(*) FILTER (WHERE state = 3) AS cancelled
          FROM tenantry.outcomes WHERE ended_at < kept_from AND bulk_id IS NOT NULL GROUP BY bulk_id
    )
    UPDATE tenantry.bulk_sets b
       SET delivered = b.delivered + o.delivered, dead = b.dead + o.dead, cancelled = b.cancelled + o.cancelled
      FROM old o WHERE b.bulk_id = o.bulk_id;
    DELETE FROM tenantry.bulk_sets WHERE delivered + dead + cancelled = total;
    RETURN tenantry.roll_outcomes(p_keep_days);
END
$$;

REVOKE ALL ON FUNCTION tenantry.submit_later, tenantry.submit_bulk, tenantry.feed, tenantry.place_stored,
    tenantry.bury_stored, tenantry.take_stored, tenantry.tidy_outcomes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.submit_later TO tenantry_submitter;
GRANT EXECUTE ON FUNCTION tenantry.submit_bulk TO tenantry_tenant;
GRANT EXECUTE ON FUNCTION tenantry.feed, tenantry.place_stored, tenantry.bury_stored, tenantry.take_stored,
    tenantry.tidy_outcomes TO tenantry_engine;

-- The tenant's side, as functions: one round trip a call, the tenant bound by the first statement for this
-- transaction, and everything after it under the row policies of the caller (SECURITY INVOKER).

-- Bind the tenant for this transaction. A transaction that is bound already stays with its tenant: nothing in it can
-- go on as another, whatever name a caller passes by mistake.
CREATE FUNCTION tenantry.bind(p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NULLIF(pg_catalog.current_setting('tenantry.tenant_id', true), '') <> p_tenant THEN
        RAISE EXCEPTION 'this transaction is bound to another tenant than %', p_tenant
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM pg_catalog.set_config('tenantry.tenant_id', p_tenant, true);
END
$$;

-- The flows for these (target, class, bucket) triples, in their order; made where missing.
CREATE FUNCTION tenantry.flows_for(p_tenant text, p_targets text[], p_classes smallint[], p_buckets smallint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    result bigint[];
BEGIN
    PERFORM tenantry.bind(p_tenant);
    INSERT INTO tenantry.lanes (tenant_id, target)
    SELECT DISTINCT p_tenant, t FROM unnest(p_targets) t ORDER BY 2
    ON CONFLICT DO NOTHING;
    INSERT INTO tenantry.flows (lane_id, tenant_id, job_class, bucket)
    SELECT DISTINCT l.lane_id, p_tenant, g.job_class, g.bucket
      FROM unnest(p_targets, p_classes, p_buckets) g (target, job_class, bucket)
      JOIN tenantry.lanes l ON l.tenant_id = p_tenant AND l.target = g.target
     ORDER BY 1, 3, 4
    ON CONFLICT DO NOTHING;
    SELECT array_agg(f.flow_id ORDER BY g.n) INTO result
      FROM unnest(p_targets, p_classes, p_buckets) WITH ORDINALITY g (target, job_class, bucket, n)
      JOIN tenantry.lanes l ON l.tenant_id = p_tenant AND l.target = g.target
      JOIN tenantry.flows f ON f.lane_id = l.lane_id AND f.job_class = g.job_class AND f.replay = ''
                           AND f.bucket = g.bucket;
    INSERT INTO tenantry.tails (flow_id, tenant_id)
    SELECT DISTINCT f, p_tenant FROM unnest(result) f ORDER BY 1
    ON CONFLICT DO NOTHING;
    RETURN result;
END
$$;

-- How many jobs of the tenant have ended, as far as the planner has taken it up: late, so never too many.
CREATE FUNCTION tenantry.ended(p_tenant text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT ended FROM tenantry.endings WHERE tenant_id = p_tenant), 0)
$$;

-- Reserve room for n jobs of the tenant; how many have not ended then. NULL when that would pass the bound.
-- The row's lock, held to the end of the transaction, makes submits of one tenant one after the other.
CREATE FUNCTION tenantry.reserve(p_tenant text, p_count integer, p_bound bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    unfinished bigint;
BEGIN
    LOOP
        UPDATE tenantry.load SET accepted = accepted + p_count
         WHERE tenant_id = p_tenant AND (p_bound IS NULL OR accepted - tenantry.ended(p_tenant) + p_count <= p_bound)
        RETURNING accepted - tenantry.ended(p_tenant) INTO unfinished;
        IF FOUND THEN RETURN unfinished; END IF;
        IF EXISTS (SELECT FROM tenantry.load WHERE tenant_id = p_tenant) THEN RETURN NULL; END IF;
        INSERT INTO tenantry.load (tenant_id) VALUES (p_tenant) ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

-- Append jobs (parallel arrays, in submit order) whose room is reserved, and tell the planner.
CREATE FUNCTION tenantry.append(
    p_tenant text, p_flows bigint[], p_ids uuid[], p_payloads bytea[], p_types text[], p_due timestamptz[],
    p_costs real[], p_bulk uuid[], p_keyed boolean[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH given AS (
        SELECT g.*, row_number() OVER (PARTITION BY g.flow_id ORDER BY g.n) AS place
          FROM unnest(p_flows, p_ids, p_payloads, p_types, p_due, p_costs, p_bulk, p_keyed) WITH ORDINALITY
               g (flow_id, job_id, payload, content_type, due_at, cost, bulk_id, keyed, n)
    ), wanted AS (
        SELECT flow_id, count(*)::integer AS n, avg(cost)::real AS cost FROM given GROUP BY flow_id
    ), moved AS (
        -- Seqs are given under the tail's lock: their order is commit order.
        UPDATE tenantry.tails t SET tail = t.tail + w.n FROM wanted w WHERE t.flow_id = w.flow_id
        RETURNING t.flow_id, t.tail - w.n AS before, w.n, w.cost
    ), placed AS (
        SELECT g.*, m.before + g.place AS seq FROM given g JOIN moved m USING (flow_id)
    ), appended AS (
        INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type, bulk_id, has_key)
        SELECT flow_id, seq, job_id, p_tenant, payload, content_type, bulk_id, keyed FROM placed
    ), delayed AS (
        INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts)
        SELECT flow_id, seq, p_tenant, due_at, 0 FROM placed WHERE due_at > clock_timestamp()
        RETURNING flow_id, seq, due_at
    )
    INSERT INTO tenantry.changes (kind, tenant_id, flow_id, first_seq, count, cost, seqs, due_at)
    SELECT 1, p_tenant, m.flow_id, m.before + 1, m.n, m.cost, d.seqs, d.due_at
      FROM moved m
      LEFT JOIN (SELECT flow_id, array_agg(seq) AS seqs, array_agg(due_at) AS due_at FROM delayed GROUP BY 1) d USING (flow_id)
     ORDER BY m.flow_id;
END
$$;

-- Submit a batch, all or none. Answers one row: refused ('', 'bound', 'key'), at (the row refused, from 0), ids (of
-- the jobs, existing ones included), existing (positions, from 0); when the bound refuses, also the tenant's jobs
-- that have not ended and those that have.
CREATE FUNCTION tenantry.submit(
    p_tenant text, p_bound bigint, p_flows bigint[], p_ids uuid[], p_payloads bytea[], p_types text[],
    p_delays double precision[], p_costs real[], p_keys bytea[], p_bodies bytea[],
    OUT refused text, OUT at integer, OUT ids uuid[], OUT existing integer[], OUT unended bigint, OUT ended_so_far bigint
) LANGUAGE plpgsql AS $$
DECLARE
    moment constant timestamptz := clock_timestamp();
    fresh  integer[];
BEGIN
    PERFORM tenantry.bind(p_tenant);
    refused := ''; ids := p_ids; existing := '{}';
    IF p_keys IS NULL THEN
        IF tenantry.reserve(p_tenant, cardinality(p_ids), p_bound) IS NULL THEN
            refused := 'bound';
            SELECT l.accepted - tenantry.ended(p_tenant), tenantry.ended(p_tenant) INTO unended, ended_so_far
          FROM tenantry.load l WHERE l.tenant_id = p_tenant;
            RETURN;
        END IF;
        PERFORM tenantry.append(p_tenant, p_flows, p_ids, p_payloads, p_types,
            ARRAY(SELECT CASE WHEN d > 0 THEN moment + make_interval(secs => d) END FROM unnest(p_delays) WITH ORDINALITY u (d, n) ORDER BY n),
            p_costs, array_fill(NULL::uuid, ARRAY[cardinality(p_ids)]), array_fill(false, ARRAY[cardinality(p_ids)]));
        RETURN;
    END IF;
    PERFORM tenantry.reserve(p_tenant, 0, NULL); -- take the tenant's lock before the keys are read
    -- The first of equal keys in the batch stands for the others; a key that is known stands for all of them.
    WITH given AS (
        SELECT g.*, min(g.n) FILTER (WHERE g.key IS NOT NULL) OVER (PARTITION BY g.key) AS leader
          FROM unnest(p_ids, p_keys, p_bodies) WITH ORDINALITY g (job_id, key, body, n)
    ), known AS (
        SELECT g.n, g.leader, coalesce(i.job_id, first.job_id) AS job_id,
               coalesce(i.body_hash, first.body) AS body, g.body AS own, i.job_id IS NOT NULL AS old
          FROM given g
          LEFT JOIN given first ON g.key IS NOT NULL AND first.n = g.leader
          LEFT JOIN tenantry.idempotency i ON g.key IS NOT NULL AND i.tenant_id = p_tenant AND i.key_hash = g.key
               AND (i.expires_at IS NULL OR i.expires_at > clock_timestamp())
    )
    SELECT min(k.n - 1) FILTER (WHERE k.body IS NOT NULL AND k.own <> k.body),
           array_agg(coalesce(k.job_id, p_ids[k.n]) ORDER BY k.n),
           coalesce(array_agg((k.n - 1)::integer ORDER BY k.n) FILTER (WHERE k.old OR k.leader < k.n), '{}'),
           coalesce(array_agg(k.n::integer ORDER BY k.n) FILTER (WHERE NOT (k.old OR coalesce(k.leader < k.n, false))), '{}')
      INTO at, ids, existing, fresh FROM known k;
    IF at IS NOT NULL THEN refused := 'key'; RETURN; END IF;
    IF cardinality(fresh) = 0 THEN RETURN; END IF;
    IF tenantry.reserve(p_tenant, cardinality(fresh), p_bound) IS NULL THEN
        refused := 'bound';
        SELECT l.accepted - tenantry.ended(p_tenant), tenantry.ended(p_tenant) INTO unended, ended_so_far
          FROM tenantry.load l WHERE l.tenant_id = p_tenant;
        RETURN;
    END IF;
    INSERT INTO tenantry.idempotency (tenant_id, key_hash, body_hash, job_id)
    SELECT p_tenant, p_keys[f], p_bodies[f], p_ids[f] FROM unnest(fresh) f WHERE p_keys[f] IS NOT NULL
    ON CONFLICT (tenant_id, key_hash) DO UPDATE
       SET body_hash = EXCLUDED.body_hash, job_id = EXCLUDED.job_id, expires_at = NULL; -- it had expired
    PERFORM tenantry.append(p_tenant,
        ARRAY(SELECT p_flows[f] FROM unnest(fresh) f ORDER BY f), ARRAY(SELECT p_ids[f] FROM unnest(fresh) f ORDER BY f),
        ARRAY(SELECT p_payloads[f] FROM unnest(fresh) f ORDER BY f), ARRAY(SELECT p_types[f] FROM unnest(fresh) f ORDER BY f),
        ARRAY(SELECT CASE WHEN p_delays[f] > 0 THEN moment + make_interval(secs => p_delays[f]) END FROM unnest(fresh) f ORDER BY f),
        ARRAY(SELECT p_costs[f] FROM unnest(fresh) f ORDER BY f),
        array_fill(NULL::uuid, ARRAY[cardinality(fresh)]),
        ARRAY(SELECT p_keys[f] IS NOT NULL FROM unnest(fresh) f ORDER BY f));
END
$$;
GRANT UPDATE (body_hash, job_id) ON tenantry.idempotency TO tenantry_tenant;

-- Cancel a job that waits. Answers the state found: 'cancelled' (now or before), another state, or NULL.
-- p_keep_key: seconds for which its idempotency key still answers.
CREATE FUNCTION tenantry.cancel(p_tenant text, p_id uuid, p_keep_key double precision) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    job     tenantry.jobs;
    bulk    uuid;
    line    bigint;
    waiting boolean;
    tries   smallint := 0;
BEGIN
    PERFORM tenantry.bind(p_tenant);
    DELETE FROM tenantry.stored WHERE job_id = p_id RETURNING bulk_id INTO bulk;
    IF FOUND THEN
        INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
        VALUES (p_id, p_tenant, 3, 0, bulk, clock_timestamp());
        RETURN 'cancelled';
    END IF;
    SELECT * INTO job FROM tenantry.jobs WHERE job_id = p_id;
    IF NOT FOUND THEN
        RETURN (SELECT (ARRAY['delivered', 'dead', 'cancelled'])[state] FROM tenantry.outcomes WHERE job_id = p_id LIMIT 1);
    END IF;
    -- While this row is locked the head cannot pass, so what waits now waits until COMMIT.
    SELECT head INTO line FROM tenantry.flows WHERE flow_id = job.flow_id FOR UPDATE;
    DELETE FROM tenantry.deferred WHERE flow_id = job.flow_id AND seq = job.seq RETURNING attempts INTO tries;
    waiting := FOUND OR job.seq >= line;
    IF NOT waiting THEN RETURN 'running'; END IF;
    DELETE FROM tenantry.jobs WHERE flow_id = job.flow_id AND seq = job.seq;
    IF NOT FOUND THEN -- ended meanwhile
        RETURN (SELECT (ARRAY['delivered', 'dead', 'cancelled'])[state] FROM tenantry.outcomes WHERE job_id = p_id LIMIT 1);
    END IF;
    DELETE FROM tenantry.attempts WHERE job_id = p_id;
    IF job.seq >= line THEN
        INSERT INTO tenantry.withdrawn (flow_id, seq, tenant_id) VALUES (job.flow_id, job.seq, p_tenant);
    END IF;
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
    VALUES (p_id, p_tenant, 3, coalesce(tries, 0), job.bulk_id, clock_timestamp());
    IF job.has_key THEN
        UPDATE tenantry.idempotency SET expires_at = clock_timestamp() + make_interval(secs => p_keep_key) WHERE job_id = p_id;
    END IF;
    INSERT INTO tenantry.changes (kind, tenant_id, flow_id, seqs, ended_tenants, ended_counts)
    VALUES (3, p_tenant, job.flow_id, ARRAY[job.seq], ARRAY[p_tenant], ARRAY[1]);
    RETURN 'cancelled';
END
$$;

REVOKE ALL ON FUNCTION tenantry.bind, tenantry.ended, tenantry.flows_for, tenantry.reserve, tenantry.append, tenantry.submit, tenantry.cancel FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.bind, tenantry.ended, tenantry.flows_for, tenantry.reserve, tenantry.append, tenantry.submit,
    tenantry.cancel
    TO tenantry_tenant;
GRANT EXECUTE ON FUNCTION tenantry.bind, tenantry.ended, tenantry.flows_for, tenantry.reserve, tenantry.append TO tenantry_engine;

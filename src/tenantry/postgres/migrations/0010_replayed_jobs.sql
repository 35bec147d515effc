-- What the queue is to replays: their jobs stand in flows of their own in the same lanes, under the same scheduler. They
-- do not count to their tenant's bound (load, endings), or a replay would shut out live submits. What they are fed from,
-- and how far each replay is, is the replay's own and stands elsewhere.
-- Workers of an older version must be gone before the first replay is fed: they would count its jobs to the bound.

-- headers: of the message that became the job, for its target; NULL for none. prior: attempts made before this replay.
-- accepted_at: when it was accepted first, where that is not submitted_at, from which on it stands in its flow.
ALTER TABLE tenantry.jobs
    ADD COLUMN headers     jsonb,
    ADD COLUMN prior       smallint NOT NULL DEFAULT 0,
    ADD COLUMN accepted_at timestamptz;
ALTER TABLE tenantry.dead_letters ADD COLUMN headers jsonb;
ALTER TABLE tenantry.flows ADD COLUMN paused boolean NOT NULL DEFAULT false;
-- Changes of kind 6 (paused) and 7 (resumed): flow_ids.
CREATE INDEX flows_replay ON tenantry.flows (replay, flow_id) WHERE replay <> '';

-- What workers must know of a replay. paused: its flows are given nothing, those that are yet to be opened too.
CREATE TABLE tenantry.replay_terms (
    replay_id    text PRIMARY KEY CHECK (replay_id <> ''),
    tenant_id    text     NOT NULL,
    park_after   smallint NOT NULL CHECK (park_after BETWEEN 1 AND 100),
    hold_unknown boolean  NOT NULL,
    paused       boolean  NOT NULL DEFAULT false
);

-- Jobs that are put aside: no end, and not counted as one. They are sent back into line (tenantry.feed_replay) or
-- dropped (tenantry.cancel).
CREATE TABLE tenantry.parked (
    job_id       uuid PRIMARY KEY,
    tenant_id    text        NOT NULL,
    target       text        NOT NULL,
    job_class    smallint    NOT NULL,
    payload      bytea       NOT NULL,
    content_type text        NOT NULL,
    headers      jsonb,
    submitted_at timestamptz NOT NULL,
    parked_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts     smallint    NOT NULL,
    status       smallint,
    reason       text        NOT NULL,
    history      jsonb       NOT NULL DEFAULT '[]',
    bulk_id      uuid,
    replay_id    text        NOT NULL,
    fingerprint  text        NOT NULL DEFAULT '',
    error_class  text        NOT NULL DEFAULT '',
    park_reason  text        NOT NULL CHECK (park_reason IN ('poison', 'unknown', 'class', 'broken', 'person'))
);
CREATE INDEX parked_tenant ON tenantry.parked (tenant_id, job_id);
CREATE INDEX parked_replay ON tenantry.parked (replay_id, fingerprint);

-- What became of replays' jobs, written with the rows that it speaks of and consumed by DELETE ... RETURNING: a row a
-- batch and replay, the arrays in parallel. kinds: 1 delivered, 2 dead, 3 parked, 4 failed and tried again, 5 unknown
-- (its worker was lost) and tried again, 6 cancelled. attempts: the number of the attempt, those before the replay included.
CREATE TABLE tenantry.replay_ends (
    end_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replay_id     text       NOT NULL,
    tenant_id     text       NOT NULL,
    job_ids       uuid[]     NOT NULL,
    kinds         smallint[] NOT NULL,
    attempts      smallint[] NOT NULL,
    error_classes text[]     NOT NULL, -- '' where nothing went wrong
    statuses      smallint[] NOT NULL,
    fingerprints  text[]     NOT NULL, -- tenantry.lanes.fingerprint; '' where nothing failed
    busy          real[]     NOT NULL  -- slot-seconds of the attempt
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX replay_ends_replay ON tenantry.replay_ends (replay_id, end_id);

DO $$
DECLARE
    name text;
    bound constant text := 'tenant_id = NULLIF(current_setting(''tenantry.tenant_id'', true), '''')';
BEGIN
    FOREACH name IN ARRAY ARRAY['replay_terms', 'parked', 'replay_ends'] LOOP
        EXECUTE format('ALTER TABLE tenantry.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE tenantry.%I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY engine ON tenantry.%I TO tenantry_engine USING (true) WITH CHECK (true)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON tenantry.%I TO tenantry_engine', name);
    END LOOP;
    EXECUTE format('CREATE POLICY tenant ON tenantry.parked TO tenantry_tenant USING (%s) WITH CHECK (%s)', bound, bound);
    -- Told, never read, as changes are: a cancel tells its own.
    EXECUTE format('CREATE POLICY tenant ON tenantry.replay_ends FOR INSERT TO tenantry_tenant WITH CHECK (%s)', bound);
END
$$;
GRANT SELECT, DELETE ON tenantry.parked TO tenantry_tenant;
GRANT INSERT (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses, fingerprints, busy)
    ON tenantry.replay_ends TO tenantry_tenant;

-- The flows of a replay for these targets, in their order; made where missing.
CREATE FUNCTION tenantry.replay_flows(p_tenant text, p_replay text, p_targets text[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    result bigint[];
BEGIN
    IF (p_replay <> '') IS NOT TRUE THEN
        RAISE EXCEPTION 'a replay has an id' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM tenantry.bind(p_tenant);
    INSERT INTO tenantry.lanes (tenant_id, target)
    SELECT DISTINCT p_tenant, t FROM unnest(p_targets) t ORDER BY 2
    ON CONFLICT DO NOTHING;
    -- The lock keeps the answer of `paused` true until COMMIT: tenantry.pause_replay comes before it or after it.
    PERFORM FROM tenantry.replay_terms WHERE replay_id = p_replay FOR SHARE;
    INSERT INTO tenantry.flows (lane_id, tenant_id, job_class, replay, paused)
    SELECT DISTINCT l.lane_id, p_tenant, 2, p_replay,
           EXISTS (SELECT FROM tenantry.replay_terms WHERE replay_id = p_replay AND paused)
      FROM unnest(p_targets) g (target)
      JOIN tenantry.lanes l ON l.tenant_id = p_tenant AND l.target = g.target
     ORDER BY 1
    ON CONFLICT DO NOTHING;
    SELECT array_agg(f.flow_id ORDER BY g.n) INTO result
      FROM unnest(p_targets) WITH ORDINALITY g (target, n)
      JOIN tenantry.lanes l ON l.tenant_id = p_tenant AND l.target = g.target
      JOIN tenantry.flows f ON f.lane_id = l.lane_id AND f.job_class = 2 AND f.replay = p_replay AND f.bucket = -1;
    INSERT INTO tenantry.tails (flow_id, tenant_id)
    SELECT DISTINCT f, p_tenant FROM unnest(result) f ORDER BY 1
    ON CONFLICT DO NOTHING;
    RETURN result;
END
$$;

-- Append a replay's jobs (parallel arrays, in their order) to the flows that tenantry.replay_flows gave, and tell the
-- planner. Nothing is reserved. p_bulk: the bulk sets that count their ends; p_accepted: when each was accepted first.
CREATE FUNCTION tenantry.append_replayed(
    p_tenant text, p_flows bigint[], p_ids uuid[], p_payloads bytea[], p_types text[], p_headers jsonb[],
    p_priors smallint[], p_bulk uuid[] DEFAULT NULL, p_accepted timestamptz[] DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- In key order: feeders of one tenant do not wait for each other's rows crosswise.
    PERFORM FROM tenantry.tails WHERE flow_id = ANY (p_flows) ORDER BY flow_id FOR NO KEY UPDATE;
    WITH given AS (
        SELECT g.*, row_number() OVER (PARTITION BY g.flow_id ORDER BY g.n) AS place
          FROM unnest(p_flows, p_ids, p_payloads, p_types, p_headers, p_priors, p_bulk, p_accepted) WITH ORDINALITY
               g (flow_id, job_id, payload, content_type, headers, prior, bulk_id, accepted_at, n)
    ), wanted AS (
        SELECT flow_id, count(*)::integer AS n FROM given GROUP BY flow_id
    ), moved AS (
        UPDATE tenantry.tails t SET tail = t.tail + w.n FROM wanted w WHERE t.flow_id = w.flow_id
        RETURNING t.flow_id, t.tail - w.n AS before, w.n
    ), appended AS (
        INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type, headers, prior, bulk_id, accepted_at)
        SELECT g.flow_id, m.before + g.place, g.job_id, p_tenant, g.payload, g.content_type, g.headers,
               coalesce(g.prior, 0), g.bulk_id, g.accepted_at
          FROM given g JOIN moved m USING (flow_id)
    )
    INSERT INTO tenantry.changes (kind, tenant_id, flow_id, first_seq, count)
    SELECT 1, p_tenant, m.flow_id, m.before + 1, m.n FROM moved m ORDER BY m.flow_id;
END
$$;

-- Take those of these jobs that are dead letters or parked out of there: their ends are no ends any more, and their
-- histories go on in attempts. Ids that are neither give no row.
CREATE FUNCTION tenantry.revive(p_tenant text, p_ids uuid[])
RETURNS TABLE (job_id uuid, attempts smallint, bulk_id uuid, submitted_at timestamptz) LANGUAGE sql AS $$
    WITH dead AS (
        DELETE FROM tenantry.dead_letters d WHERE d.job_id = ANY (p_ids) AND d.tenant_id = p_tenant
        RETURNING d.job_id, d.attempts, d.submitted_at, d.history
    ), ended AS (
        DELETE FROM tenantry.outcomes o WHERE o.job_id = ANY (ARRAY(SELECT dead.job_id FROM dead))
        RETURNING o.job_id, o.bulk_id
    ), aside AS (
        DELETE FROM tenantry.parked p WHERE p.job_id = ANY (p_ids) AND p.tenant_id = p_tenant
        RETURNING p.job_id, p.attempts, p.bulk_id, p.submitted_at, p.history
    ), found AS (
        SELECT d.job_id, d.attempts, e.bulk_id, d.submitted_at, d.history FROM dead d LEFT JOIN ended e ON e.job_id = d.job_id
         UNION ALL
        SELECT * FROM aside
    ), history AS (
        INSERT INTO tenantry.attempts (job_id, number, tenant_id, ended_at, busy_for, status, error_class, excerpt)
        SELECT f.job_id, (h ->> 'number')::smallint, p_tenant, to_timestamp((h ->> 'ended_at')::float8),
               (h ->> 'busy_for')::real, (h ->> 'status')::smallint, h ->> 'error_class', coalesce(h ->> 'excerpt', '')
          FROM found f CROSS JOIN LATERAL jsonb_array_elements(f.history) h
        ON CONFLICT DO NOTHING
    )
    SELECT f.job_id, f.attempts, f.bulk_id, f.submitted_at FROM found f
$$;

-- Feed jobs of one replay: what is a dead letter or parked goes on under its id, with its history and with the attempts
-- that it had; anything else is new, with p_priors attempts made elsewhere. Whose the messages are, and that none is in
-- two replays, is for the caller to see to, in this transaction.
CREATE FUNCTION tenantry.feed_replay(
    p_tenant text, p_replay text, p_targets text[], p_ids uuid[], p_payloads bytea[], p_types text[], p_headers jsonb[],
    p_priors smallint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    flows bigint[] := tenantry.replay_flows(p_tenant, p_replay, p_targets);
BEGIN
    PERFORM tenantry.append_replayed(p_tenant, flows, p_ids, p_payloads, p_types, p_headers, g.priors, g.bulks, g.accepted)
       FROM (SELECT array_agg(coalesce(r.attempts, u.prior, 0::smallint) ORDER BY u.n) AS priors,
                    array_agg(r.bulk_id ORDER BY u.n) AS bulks, array_agg(r.submitted_at ORDER BY u.n) AS accepted
               FROM unnest(p_ids, p_priors) WITH ORDINALITY u (job_id, prior, n)
               LEFT JOIN tenantry.revive(p_tenant, p_ids) r ON r.job_id = u.job_id) g;
END
$$;

-- A paused replay starts nothing in any lane; what runs goes on.
CREATE FUNCTION tenantry.pause_replay(p_tenant text, p_replay text, p_paused boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tenantry.bind(p_tenant);
    UPDATE tenantry.replay_terms SET paused = p_paused WHERE replay_id = p_replay AND tenant_id = p_tenant;
    WITH lines AS (
        SELECT flow_id FROM tenantry.flows WHERE replay = p_replay AND replay <> '' AND tenant_id = p_tenant
         ORDER BY flow_id FOR NO KEY UPDATE
    ), changed AS (
        UPDATE tenantry.flows f SET paused = p_paused FROM lines l WHERE f.flow_id = l.flow_id RETURNING f.flow_id
    )
    INSERT INTO tenantry.changes (kind, tenant_id, flow_ids)
    SELECT CASE WHEN p_paused THEN 6 ELSE 7 END, p_tenant, array_agg(flow_id) FROM changed HAVING count(*) > 0;
END
$$;

-- Take up to p_limit waiting or delayed jobs of a replay out of line and make them dead letters: their ids. What runs goes
-- on.
CREATE FUNCTION tenantry.withdraw_replay(p_tenant text, p_replay text, p_limit integer) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    lines bigint[];
    gone  uuid[];
BEGIN
    PERFORM tenantry.bind(p_tenant);
    -- While these rows are locked no head can pass, so what waits now waits until COMMIT (as in tenantry.cancel).
    lines := ARRAY(SELECT flow_id FROM tenantry.flows WHERE replay = p_replay AND replay <> '' AND tenant_id = p_tenant
                    ORDER BY flow_id FOR NO KEY UPDATE);
    PERFORM FROM tenantry.tails WHERE flow_id = ANY (lines) ORDER BY flow_id FOR NO KEY UPDATE;
    WITH later AS (
        DELETE FROM tenantry.deferred WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM tenantry.deferred WHERE flow_id = ANY (lines) LIMIT p_limit))
        RETURNING flow_id, seq, attempts
    ), next AS MATERIALIZED (
        SELECT f.flow_id, j.seq, 0::smallint AS attempts
          FROM tenantry.flows f
         CROSS JOIN LATERAL (
            SELECT seq FROM tenantry.jobs w
             WHERE w.flow_id = f.flow_id AND w.seq >= f.head
               AND NOT EXISTS (SELECT FROM tenantry.deferred d WHERE d.flow_id = w.flow_id AND d.seq = w.seq)
             ORDER BY w.seq LIMIT p_limit) j
         WHERE f.flow_id = ANY (lines)
         LIMIT greatest(0, p_limit - (SELECT count(*) FROM later))
    ), taken AS (
        DELETE FROM tenantry.jobs j USING (SELECT * FROM later UNION ALL SELECT * FROM next) c
         WHERE j.flow_id = c.flow_id AND j.seq = c.seq
        RETURNING j.*, (j.prior + c.attempts)::smallint AS attempts
    ), empty AS (
        INSERT INTO tenantry.withdrawn (flow_id, seq, tenant_id)
        SELECT t.flow_id, t.seq, p_tenant FROM taken t JOIN tenantry.flows f USING (flow_id) WHERE t.seq >= f.head
    ), history AS (
        DELETE FROM tenantry.attempts a WHERE a.job_id = ANY (ARRAY(SELECT job_id FROM taken WHERE attempts > 0))
        RETURNING a.*
    ), told_before AS (
        SELECT job_id, jsonb_agg(jsonb_build_object('number', number, 'ended_at', extract(epoch FROM ended_at),
                 'busy_for', busy_for, 'status', status, 'error_class', error_class, 'excerpt', excerpt) ORDER BY number) AS told
          FROM history GROUP BY job_id
    ), buried AS (
        INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, headers,
                                           submitted_at, attempts, reason, history)
        SELECT t.job_id, p_tenant, l.target, f.job_class, t.payload, t.content_type, t.headers,
               coalesce(t.accepted_at, t.submitted_at), t.attempts, 'returned: the replay was cancelled', coalesce(b.told, '[]')
          FROM taken t JOIN tenantry.flows f USING (flow_id) JOIN tenantry.lanes l USING (lane_id)
          LEFT JOIN told_before b USING (job_id)
    ), recorded AS (
        INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
        SELECT job_id, p_tenant, 2, attempts, bulk_id, clock_timestamp() FROM taken
    ), told AS (
        INSERT INTO tenantry.changes (kind, tenant_id, flow_id, seqs)
        SELECT 3, p_tenant, flow_id, array_agg(seq ORDER BY seq) FROM taken GROUP BY flow_id ORDER BY flow_id
    )
    SELECT coalesce(array_agg(job_id), '{}') INTO gone FROM taken;
    -- A replay that ends here is claimed from no more: its head must not stay before places that are all empty.
    WITH done AS (
        SELECT t.flow_id, t.tail FROM tenantry.tails t JOIN tenantry.flows f USING (flow_id)
         WHERE t.flow_id = ANY (lines)
           AND NOT EXISTS (SELECT FROM tenantry.jobs j WHERE j.flow_id = f.flow_id AND j.seq >= f.head)
    ), passed AS (
        DELETE FROM tenantry.withdrawn w USING done d WHERE w.flow_id = d.flow_id
    )
    UPDATE tenantry.flows f SET head = d.tail + 1 FROM done d WHERE f.flow_id = d.flow_id AND f.head <= d.tail;
    RETURN gone;
END
$$;

REVOKE ALL ON FUNCTION tenantry.replay_flows, tenantry.append_replayed, tenantry.revive, tenantry.feed_replay,
    tenantry.pause_replay, tenantry.withdraw_replay FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.replay_flows, tenantry.append_replayed, tenantry.revive, tenantry.feed_replay,
    tenantry.pause_replay, tenantry.withdraw_replay TO tenantry_engine;

-- As before, and: a replay's job was not counted and is not uncounted; its end is told to the replay; a parked job is
-- dropped.
CREATE OR REPLACE FUNCTION tenantry.cancel(p_tenant text, p_id uuid, p_keep_key double precision)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    job     tenantry.jobs;
    aside   tenantry.parked;
    bulk    uuid;
    line    bigint;
    rerun   text;
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
        DELETE FROM tenantry.parked WHERE job_id = p_id RETURNING * INTO aside;
        IF FOUND THEN
            INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
            VALUES (p_id, p_tenant, 3, aside.attempts, aside.bulk_id, clock_timestamp());
            INSERT INTO tenantry.replay_ends
                   (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses, fingerprints, busy)
            VALUES (aside.replay_id, p_tenant, ARRAY[p_id], '{6}', ARRAY[aside.attempts], '{""}', '{NULL}', '{""}', '{0}');
            RETURN 'cancelled';
        END IF;
        RETURN (SELECT (ARRAY['delivered', 'dead', 'cancelled'])[state] FROM tenantry.outcomes WHERE job_id = p_id LIMIT 1);
    END IF;
    -- While this row is locked the head cannot pass, so what waits now waits until COMMIT.
    SELECT head, replay INTO line, rerun FROM tenantry.flows WHERE flow_id = job.flow_id FOR UPDATE;
    DELETE FROM tenantry.deferred WHERE flow_id = job.flow_id AND seq = job.seq RETURNING attempts INTO tries;
    waiting := FOUND OR job.seq >= line;
    IF NOT waiting THEN RETURN 'running'; END IF;
    DELETE FROM tenantry.jobs WHERE flow_id = job.flow_id AND seq = job.seq;
    IF NOT FOUND THEN -- ended meanwhile
        RETURN coalesce((SELECT (ARRAY['delivered', 'dead', 'cancelled'])[state] FROM tenantry.outcomes WHERE job_id = p_id LIMIT 1),
                        (SELECT 'parked' FROM tenantry.parked WHERE job_id = p_id));
    END IF;
    DELETE FROM tenantry.attempts WHERE job_id = p_id;
    IF job.seq >= line THEN
        INSERT INTO tenantry.withdrawn (flow_id, seq, tenant_id) VALUES (job.flow_id, job.seq, p_tenant);
    END IF;
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, bulk_id, ended_at)
    VALUES (p_id, p_tenant, 3, job.prior + coalesce(tries, 0), job.bulk_id, clock_timestamp());
    IF job.has_key THEN
        UPDATE tenantry.idempotency SET expires_at = clock_timestamp() + make_interval(secs => p_keep_key) WHERE job_id = p_id;
    END IF;
    IF rerun = '' THEN
        INSERT INTO tenantry.changes (kind, tenant_id, flow_id, seqs, ended_tenants, ended_counts)
        VALUES (3, p_tenant, job.flow_id, ARRAY[job.seq], ARRAY[p_tenant], ARRAY[1]);
    ELSE
        INSERT INTO tenantry.changes (kind, tenant_id, flow_id, seqs) VALUES (3, p_tenant, job.flow_id, ARRAY[job.seq]);
        INSERT INTO tenantry.replay_ends
               (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses, fingerprints, busy)
        VALUES (rerun, p_tenant, ARRAY[p_id], '{6}', ARRAY[job.prior + coalesce(tries, 0)], '{""}', '{NULL}', '{""}', '{0}');
    END IF;
    RETURN 'cancelled';
END
$$;

-- As before, and: the id of a parked job is that job's.
CREATE OR REPLACE FUNCTION tenantry.place_stored(p_tenant text, p_rows tenantry.stored[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(p_rows) r
                WHERE r.bulk_id IS NULL
                  AND (EXISTS (SELECT FROM tenantry.outcomes o WHERE o.job_id = r.job_id)
                       OR EXISTS (SELECT FROM tenantry.parked p WHERE p.job_id = r.job_id)
                       OR EXISTS (SELECT FROM tenantry.dead_letters d WHERE d.job_id = r.job_id))) THEN
        RAISE EXCEPTION 'a job of this id has ended already, or is parked' USING ERRCODE = 'unique_violation';
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

CREATE OR REPLACE FUNCTION tenantry.bury_stored(p_tenant text, p_rows tenantry.stored[], p_reason text) RETURNS uuid[]
LANGUAGE sql AS $$
    WITH named AS (
        SELECT r.*, CASE WHEN EXISTS (SELECT FROM tenantry.jobs j WHERE j.job_id = r.job_id)
                           OR EXISTS (SELECT FROM tenantry.outcomes o WHERE o.job_id = r.job_id)
                           OR EXISTS (SELECT FROM tenantry.parked p WHERE p.job_id = r.job_id)
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

-- Replays: how far each is, what it has taken, and which messages were seen before. Who writes what:
--   replays            people's orders (state), the coordinator that holds the lease (the rest): never a settle
--   replay_keys        the feed and the fold, under the replay's row; feeds of one tenant one after the other
--   replay_fed         one narrow row for each message that was fed and has not ended (parked ones have not)
-- Ends reach these tables by way of tenantry.replay_ends (0010): a settle appends there and locks nothing here.

CREATE TABLE tenantry.replays (
    replay_id        text PRIMARY KEY,
    tenant_id        text             NOT NULL,
    spec             text             NOT NULL,
    again            boolean          NOT NULL, -- of the spec, as are the next two: what SQL reads of it
    hold_unknown     boolean          NOT NULL,
    park_after       smallint         NOT NULL,
    plan             text             NOT NULL,
    source_bound     text             NOT NULL,
    source_count     bigint,
    counted_exactly  boolean          NOT NULL,
    state            text             NOT NULL DEFAULT 'planned' CHECK (state IN
        ('planned', 'running', 'paused', 'held', 'draining', 'cancelling', 'finished', 'cancelled')),
    hold_rule        text,
    hold_reason      text,
    frees_at         timestamptz,
    hold_stops       boolean          NOT NULL DEFAULT false, -- its flows are paused until it frees
    placed           boolean          NOT NULL DEFAULT false, -- it is one of those that may run at once
    created_at       timestamptz      NOT NULL DEFAULT clock_timestamp(),
    started_at       timestamptz,
    ended_at         timestamptz,
    holder           text             NOT NULL DEFAULT '',
    token            bigint           NOT NULL DEFAULT 0,
    lease_until      timestamptz      NOT NULL DEFAULT '-infinity',
    running_for      double precision NOT NULL DEFAULT 0,
    progress         text             NOT NULL DEFAULT '',
    position         text             NOT NULL DEFAULT '',
    exhausted        boolean          NOT NULL DEFAULT false,
    sampled          boolean          NOT NULL DEFAULT false,
    -- As of the last fold; tenantry.replay_counts adds what was told since.
    unended          bigint           NOT NULL DEFAULT 0,
    duplicate        bigint           NOT NULL DEFAULT 0,
    delivered        bigint           NOT NULL DEFAULT 0,
    parked           bigint           NOT NULL DEFAULT 0,
    dropped          bigint           NOT NULL DEFAULT 0,
    dead             bigint           NOT NULL DEFAULT 0,
    returned         bigint           NOT NULL DEFAULT 0,
    unknown          bigint           NOT NULL DEFAULT 0,
    not_meant        bigint           NOT NULL DEFAULT 0,
    seen_failing     bigint           NOT NULL DEFAULT 0,
    failures         bigint           NOT NULL DEFAULT 0,
    message_faults   bigint           NOT NULL DEFAULT 0,
    CHECK ((state = 'held') = (hold_rule IS NOT NULL)),
    CHECK (least(unended, duplicate, delivered, parked, dead, returned) >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX replays_tenant ON tenantry.replays (tenant_id, replay_id);
CREATE INDEX replays_live ON tenantry.replays (lease_until)
    WHERE state IN ('running', 'paused', 'held', 'draining', 'cancelling');

CREATE TABLE tenantry.replay_fed (
    replay_id text        NOT NULL,
    job_id    uuid        NOT NULL,
    tenant_id text        NOT NULL,
    key       bytea       NOT NULL,
    seen_at   timestamptz NOT NULL, -- of its key
    origin    text        NOT NULL,
    parked    boolean     NOT NULL DEFAULT false,
    unknown   boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (replay_id, job_id)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Failures alike; the row with fingerprint '' counts what of that origin was delivered.
CREATE TABLE tenantry.replay_classes (
    replay_id   text   NOT NULL,
    origin      text   NOT NULL,
    fingerprint text   NOT NULL,
    tenant_id   text   NOT NULL,
    failures    bigint NOT NULL DEFAULT 0,
    delivered   bigint NOT NULL DEFAULT 0,
    example     text   NOT NULL DEFAULT '',
    PRIMARY KEY (replay_id, origin, fingerprint)
) WITH (fillfactor = 50);

-- What is the tenant's rather than one replay's. Its row is the lock under which one tenant's windows are staged.
CREATE TABLE tenantry.replay_tenants (
    tenant_id    text PRIMARY KEY,
    lifetime_for double precision NOT NULL DEFAULT 1209600, -- seconds; replay/dedup.py LIFETIME
    day          date             NOT NULL DEFAULT (clock_timestamp() AT TIME ZONE 'UTC')::date,
    replayed     bigint           NOT NULL DEFAULT 0, -- on that day
    most_running integer -- as the last start had it
) WITH (fillfactor = 50);

CREATE TABLE tenantry.replay_generations (
    tenant_id text   NOT NULL,
    day       date   NOT NULL,
    keys      bigint NOT NULL,
    PRIMARY KEY (tenant_id, day)
) WITH (fillfactor = 50);

-- What was seen: by the hash of its tenant, so that a hot key range wears no other tenant's index, and inside by the day
-- of its first sight, so that what has expired is dropped and never deleted.
-- state: 1 staged, 2 delivered, 3 unknown, 4 failed. failings: in how many replays it ended dead or parked.
CREATE TABLE tenantry.replay_keys (
    tenant_id text        NOT NULL,
    key       bytea       NOT NULL,
    seen_at   timestamptz NOT NULL,
    state     smallint    NOT NULL,
    failings  integer     NOT NULL,
    replay_id text        NOT NULL,
    PRIMARY KEY (tenant_id, key, seen_at)
) PARTITION BY HASH (tenant_id);
DO $$
BEGIN
    FOR n IN 0..7 LOOP
        EXECUTE format('CREATE TABLE tenantry.replay_keys_%s PARTITION OF tenantry.replay_keys '
                       'FOR VALUES WITH (MODULUS 8, REMAINDER %s) PARTITION BY RANGE (seen_at)', n, n);
    END LOOP;
END
$$;

DO $$
DECLARE
    name text;
    bound constant text := 'tenant_id = NULLIF(current_setting(''tenantry.tenant_id'', true), '''')';
BEGIN
    FOREACH name IN ARRAY ARRAY['replays', 'replay_fed', 'replay_classes', 'replay_tenants', 'replay_generations', 'replay_keys'] LOOP
        EXECUTE format('ALTER TABLE tenantry.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE tenantry.%I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY engine ON tenantry.%I TO tenantry_engine USING (true) WITH CHECK (true)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON tenantry.%I TO tenantry_engine', name);
        IF name NOT IN ('replay_fed', 'replay_classes') THEN
            EXECUTE format('CREATE POLICY tenant ON tenantry.%I TO tenantry_tenant USING (%s) WITH CHECK (%s)', name, bound, bound);
            EXECUTE format('GRANT SELECT ON tenantry.%I TO tenantry_tenant', name);
        END IF;
    END LOOP;
    -- tenantry.roll_keys reads it with the owner's rights.
    EXECUTE format('CREATE POLICY rolling ON tenantry.replay_generations TO %I USING (true)', current_user);
    EXECUTE format('CREATE POLICY rolling ON tenantry.replay_tenants FOR SELECT TO %I USING (true)', current_user);
    FOR n IN 0..7 LOOP -- nobody reads a partition but by way of its parent
        EXECUTE format('ALTER TABLE tenantry.replay_keys_%s ENABLE ROW LEVEL SECURITY', n);
        EXECUTE format('ALTER TABLE tenantry.replay_keys_%s FORCE ROW LEVEL SECURITY', n);
    END LOOP;
END
$$;
-- People plan as their tenant; what their orders change is the engine's to write, once their own policy shows the replay.
GRANT INSERT (replay_id, tenant_id, spec, again, hold_unknown, park_after, plan, source_bound, source_count, counted_exactly)
    ON tenantry.replays TO tenantry_tenant;

-- Make the generations of keys from p_from to p_to where they are missing: how many partitions. As roll_outcomes: the
-- owner's rights, a pinned search_path, no long wait for a lock. A partition is made beside and attached, which holds up
-- no feed.
CREATE FUNCTION tenantry.make_keys(p_from date, p_to date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    day  date;
    leaf text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(8391162081467360890);
    FOR day IN SELECT p_from + n FROM generate_series(0, p_to - p_from) n LOOP
        FOR bucket IN 0..7 LOOP
            leaf := format('replay_keys_%s_%s', bucket, to_char(day, 'YYYYMMDD'));
            CONTINUE WHEN to_regclass(format('tenantry.%I', leaf)) IS NOT NULL;
            EXECUTE format('CREATE TABLE tenantry.%I (LIKE tenantry.replay_keys INCLUDING INDEXES) WITH (fillfactor = 80)', leaf);
            EXECUTE format('ALTER TABLE tenantry.%I ENABLE ROW LEVEL SECURITY', leaf);
            EXECUTE format('ALTER TABLE tenantry.%I FORCE ROW LEVEL SECURITY', leaf);
            EXECUTE format('ALTER TABLE tenantry.%I ATTACH PARTITION tenantry.%I FOR VALUES FROM (%L) TO (%L)',
                           'replay_keys_' || bucket, leaf, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- As make_keys, and drop the generations before p_from that no tenant's lifetime reaches. How many partitions changed.
CREATE FUNCTION tenantry.roll_keys(p_from date, p_to date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    part    record;
    changed integer := tenantry.make_keys(p_from, p_to);
BEGIN
    FOR part IN
        SELECT c.relname, p.bucket, to_date(substring(c.relname FROM '_(\d{8})$'), 'YYYYMMDD') AS day
          FROM generate_series(0, 7) p (bucket)
          JOIN pg_inherits i ON i.inhparent = format('tenantry.replay_keys_%s', p.bucket)::regclass
          JOIN pg_class c ON c.oid = i.inhrelid
         WHERE to_date(substring(c.relname FROM '_(\d{8})$'), 'YYYYMMDD') < least(p_from, (now() AT TIME ZONE 'UTC')::date - 1)
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT FROM tenantry.replay_generations g JOIN tenantry.replay_tenants t USING (tenant_id)
             WHERE g.day = part.day AND satisfies_hash_partition('tenantry.replay_keys'::regclass, 8, part.bucket, g.tenant_id)
               AND ((g.day + 1)::timestamp AT TIME ZONE 'UTC') + make_interval(secs => t.lifetime_for) > now());
        EXECUTE format('DROP TABLE tenantry.%I', part.relname);
        DELETE FROM tenantry.replay_generations g
         WHERE g.day = part.day AND satisfies_hash_partition('tenantry.replay_keys'::regclass, 8, part.bucket, g.tenant_id);
        changed := changed + 1;
    END LOOP;
    RETURN changed;
END
$$;
REVOKE ALL ON FUNCTION tenantry.make_keys, tenantry.roll_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.make_keys, tenantry.roll_keys TO tenantry_engine;

-- The tenant's row, locked until COMMIT; the count of its day begins anew with the day.
CREATE FUNCTION tenantry.replay_tenant(p_tenant text) RETURNS tenantry.replay_tenants LANGUAGE plpgsql AS $$
DECLARE
    one   tenantry.replay_tenants;
    today date;
BEGIN
    INSERT INTO tenantry.replay_tenants (tenant_id) VALUES (p_tenant) ON CONFLICT DO NOTHING;
    SELECT * INTO one FROM tenantry.replay_tenants WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    today := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    IF one.day < today THEN one.day := today; one.replayed := 0; END IF;
    RETURN one;
END
$$;

-- What is known of these keys of one tenant: their newest rows of the last p_lifetime seconds. EXECUTE plans it with
-- these very values, so that it locks and probes the partitions of this tenant's living generations and no other.
CREATE FUNCTION tenantry.known_keys(p_tenant text, p_keys bytea[], p_lifetime double precision)
RETURNS TABLE (key bytea, seen_at timestamptz, state smallint, failings integer, replay_id text)
LANGUAGE plpgsql STABLE ROWS 1000 SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY EXECUTE
        'SELECT DISTINCT ON (d.key) d.key, d.seen_at, d.state, d.failings, d.replay_id FROM tenantry.replay_keys d
          WHERE d.tenant_id = $1 AND d.key = ANY ($2) AND d.seen_at > $3 ORDER BY d.key, d.seen_at DESC'
        USING p_tenant, p_keys, clock_timestamp() - make_interval(secs => p_lifetime);
END
$$;

-- Write what became of keys, named with their first sights: parallel arrays. Only those that p_replay has, or takes now.
-- Failed says less than unknown: the target may have it. EXECUTE for the same reason; and each key is looked up once and
-- then joined by its hash, whatever the statistics of a generation that was empty this morning say.
CREATE FUNCTION tenantry.mark_keys(
    p_tenant text, p_replay text, p_taking boolean, p_keys bytea[], p_seen timestamptz[], p_states smallint[], p_failings integer[]
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_nestloop = off AS $$
BEGIN
    IF p_keys IS NULL THEN RETURN; END IF;
    EXECUTE
        'UPDATE tenantry.replay_keys d
            SET state = CASE WHEN d.state = 3 AND g.state = 4 THEN 3 ELSE g.state END, failings = d.failings + g.failings, replay_id = $2
           FROM unnest($4, $5, $6, $7) g (key, seen_at, state, failings)
          WHERE d.tenant_id = $1 AND d.key = ANY ($4) AND d.seen_at BETWEEN $8 AND $9
            AND d.key = g.key AND d.seen_at = g.seen_at AND (d.replay_id = $2 OR $3)'
        USING p_tenant, p_replay, p_taking, p_keys, p_seen, p_states, p_failings,
              (SELECT min(s) FROM unnest(p_seen) s), (SELECT max(s) FROM unnest(p_seen) s);
END
$$;

-- Put messages aside that are not to be sent: parallel arrays. A dead letter of ours leaves its place, with its history.
CREATE FUNCTION tenantry.park_fed(
    p_tenant text, p_replay text, p_ids uuid[], p_targets text[], p_payloads bytea[], p_types text[], p_headers jsonb[],
    p_priors smallint[], p_rules text[], p_reasons text[], p_errors text[]
) RETURNS void LANGUAGE sql AS $$
    WITH letters AS (
        DELETE FROM tenantry.dead_letters WHERE job_id = ANY (p_ids) AND tenant_id = p_tenant RETURNING *
    ), ended AS (
        DELETE FROM tenantry.outcomes o WHERE o.job_id = ANY (ARRAY(SELECT job_id FROM letters)) RETURNING o.job_id, o.bulk_id
    )
    INSERT INTO tenantry.parked (job_id, tenant_id, target, job_class, payload, content_type, headers, submitted_at, attempts,
                                 status, reason, history, bulk_id, replay_id, error_class, park_reason)
    SELECT g.job_id, p_tenant, g.target, 2, g.payload, g.content_type, g.headers, coalesce(l.submitted_at, clock_timestamp()),
           coalesce(l.attempts, g.prior), l.status, g.reason, coalesce(l.history, '[]'), e.bulk_id, p_replay, g.error_class,
           coalesce(nullif(g.rule, ''), 'unknown')
      FROM unnest(p_ids, p_targets, p_payloads, p_types, p_headers, p_priors, p_rules, p_reasons, p_errors)
           g (job_id, target, payload, content_type, headers, prior, rule, reason, error_class)
      LEFT JOIN letters l USING (job_id)
      LEFT JOIN ended e USING (job_id)
$$;

-- Stage one window under the lease (p_replay, p_token): parallel arrays, in their order. NULL: the lease is lost, or the
-- replay does not run, and nothing was written.
--  p_letters: it is a dead letter of ours, under its own id   p_rules: why it is parked at once, '' for what is to be sent
--  fates: 1 staged, 2 again, 3 duplicate, 4 parked, 5 gone, 6 over a quota
--  quota: '' or which one was reached; used: of it; frees_at: when it has room again
CREATE FUNCTION tenantry.feed_window(
    p_replay text, p_token bigint, p_lifetime double precision, p_a_day bigint, p_most_keys bigint,
    p_position text, p_left bigint, p_exhausted boolean,
    p_keys bytea[], p_ids uuid[], p_letters boolean[], p_targets text[], p_payloads bytea[], p_types text[], p_headers jsonb[],
    p_priors smallint[], p_origins text[], p_rules text[], p_reasons text[], p_errors text[],
    OUT fates smallint[], OUT quota text, OUT used bigint, OUT frees_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    mine   tenantry.replays;
    whose  tenantry.replay_tenants;
    moment timestamptz;
    stored bigint;
    oldest date;
    seen   timestamptz[]; -- the first sights of known keys, NULL for new ones
    failed bigint;        -- of those taken, how many had failed before
    fresh  bigint;
    taken  bigint;
BEGIN
    SELECT * INTO mine FROM tenantry.replays
     WHERE replay_id = p_replay AND token = p_token AND lease_until > clock_timestamp() AND state = 'running'
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    whose := tenantry.replay_tenant(mine.tenant_id);
    moment := clock_timestamp(); -- under the lock: the first sights of a tenant's windows follow each other
    SELECT coalesce(sum(g.keys), 0), min(g.day) INTO stored, oldest
      FROM tenantry.replay_generations g
     WHERE g.tenant_id = mine.tenant_id
       AND ((g.day + 1)::timestamp AT TIME ZONE 'UTC') + make_interval(secs => p_lifetime) > moment;
    PERFORM FROM tenantry.dead_letters
      WHERE job_id = ANY (ARRAY(SELECT u.id FROM unnest(p_ids, p_letters) u (id, letter) WHERE u.letter))
        AND tenant_id = mine.tenant_id ORDER BY job_id FOR UPDATE;

    WITH judged AS (
        SELECT g.*, k.seen_at, coalesce(k.failings, 0) > 0 AS failed_before,
               -- As replay/dedup.py fate_of() has it.
               CASE WHEN k.replay_id = p_replay THEN 2
                    WHEN k.state = 1 OR k.state = 2 AND NOT mine.again THEN 3
                    WHEN g.rule <> '' OR k.state = 3 AND mine.hold_unknown THEN 4
                    ELSE 1 END AS fate
          FROM unnest(p_keys, p_ids, p_letters, p_rules) WITH ORDINALITY g (key, job_id, letter, rule, n)
          LEFT JOIN tenantry.known_keys(mine.tenant_id, p_keys, p_lifetime) k ON k.key = g.key
    ), there AS (
        SELECT j.*, CASE WHEN j.letter AND j.fate IN (1, 4) AND d.job_id IS NULL THEN 5 ELSE j.fate END AS so_far
          FROM judged j
          LEFT JOIN LATERAL (SELECT l.job_id FROM tenantry.dead_letters l
                              WHERE l.job_id = j.job_id AND l.tenant_id = mine.tenant_id AND j.letter OFFSET 0) d ON true
    ), once AS (
        -- The second of two alike in one window is what it would be in the next one.
        SELECT t.*, CASE WHEN t.so_far IN (1, 4) AND row_number() OVER (PARTITION BY t.key, t.so_far IN (1, 4) ORDER BY t.n) > 1
                         THEN 2 ELSE t.so_far END AS fated
          FROM there t
    ), counted AS (
        SELECT o.*, count(*) FILTER (WHERE o.fated IN (1, 4)) OVER line AS nth,
               count(*) FILTER (WHERE o.fated IN (1, 4) AND o.seen_at IS NULL) OVER line AS nth_new
          FROM once o WINDOW line AS (ORDER BY o.n)
    ), over AS (
        SELECT min(c.n) FILTER (WHERE whose.replayed + c.nth > p_a_day) AS a_day,
               min(c.n) FILTER (WHERE c.seen_at IS NULL AND stored + c.nth_new > p_most_keys) AS keys
          FROM counted c WHERE c.fated IN (1, 4)
    ), final AS (
        SELECT c.n, c.seen_at, c.failed_before, CASE WHEN c.n >= least(o.a_day, o.keys) THEN 6 ELSE c.fated END AS fate,
               CASE WHEN o.a_day <= o.keys OR o.keys IS NULL AND o.a_day IS NOT NULL THEN 'a_day'
                    WHEN o.keys IS NOT NULL THEN 'keys' ELSE '' END AS reached
          FROM counted c CROSS JOIN over o
    )
    SELECT array_agg(f.fate::smallint ORDER BY f.n), array_agg(f.seen_at ORDER BY f.n), coalesce(max(f.reached), ''),
           count(*) FILTER (WHERE f.fate IN (1, 4)), count(*) FILTER (WHERE f.fate IN (1, 4) AND f.seen_at IS NULL),
           count(*) FILTER (WHERE f.fate IN (1, 4) AND f.failed_before)
      INTO fates, seen, quota, taken, fresh, failed
      FROM final f;
    fates := coalesce(fates, '{}');
    IF quota = 'a_day' THEN
        used := whose.replayed + taken;
        frees_at := (whose.day + 1)::timestamp AT TIME ZONE 'UTC';
    ELSIF quota = 'keys' THEN
        used := stored + fresh;
        frees_at := ((coalesce(oldest, whose.day) + 1)::timestamp AT TIME ZONE 'UTC') + make_interval(secs => p_lifetime);
    END IF;

    IF taken > 0 THEN
        PERFORM tenantry.keep_seen(mine.tenant_id, p_replay, moment, p_keys, seen, fates, p_rules);
        PERFORM tenantry.feed_replay(mine.tenant_id, p_replay, g.targets, g.ids, g.payloads, g.types, g.headers, g.priors)
           FROM (SELECT array_agg(target ORDER BY n) AS targets, array_agg(job_id ORDER BY n) AS ids,
                        array_agg(payload ORDER BY n) AS payloads, array_agg(content_type ORDER BY n) AS types,
                        array_agg(headers ORDER BY n) AS headers, array_agg(prior ORDER BY n) AS priors
                   FROM unnest(p_targets, p_ids, p_payloads, p_types, p_headers, p_priors, fates) WITH ORDINALITY
                        u (target, job_id, payload, content_type, headers, prior, fate, n)
                  WHERE fate = 1 HAVING count(*) > 0) g;
        PERFORM tenantry.park_fed(mine.tenant_id, p_replay, g.ids, g.targets, g.payloads, g.types, g.headers, g.priors, g.rules,
                                  g.reasons, g.errors)
           FROM (SELECT array_agg(job_id ORDER BY n) AS ids, array_agg(target ORDER BY n) AS targets,
                        array_agg(payload ORDER BY n) AS payloads, array_agg(content_type ORDER BY n) AS types,
                        array_agg(headers ORDER BY n) AS headers, array_agg(prior ORDER BY n) AS priors,
                        array_agg(rule ORDER BY n) AS rules, array_agg(reason ORDER BY n) AS reasons,
                        array_agg(error ORDER BY n) AS errors
                   FROM unnest(p_ids, p_targets, p_payloads, p_types, p_headers, p_priors, p_rules, p_reasons, p_errors, fates)
                        WITH ORDINALITY u (job_id, target, payload, content_type, headers, prior, rule, reason, error, fate, n)
                  WHERE fate = 4 HAVING count(*) > 0) g;
        INSERT INTO tenantry.replay_fed (replay_id, job_id, tenant_id, key, seen_at, origin, parked)
        SELECT p_replay, u.job_id, mine.tenant_id, u.key, coalesce(u.seen_at, moment), u.origin, u.fate = 4
          FROM unnest(p_ids, p_keys, seen, p_origins, fates) u (job_id, key, seen_at, origin, fate)
         WHERE u.fate IN (1, 4);
    END IF;
    UPDATE tenantry.replay_tenants t SET day = whose.day, replayed = whose.replayed + taken, lifetime_for = p_lifetime
     WHERE t.tenant_id = mine.tenant_id;
    -- A window that a quota cut short is offered again, so what it says of the source does not hold yet.
    UPDATE tenantry.replays r
       SET unended = r.unended + c.staged, parked = r.parked + c.parked, duplicate = r.duplicate + c.duplicate,
           seen_failing = r.seen_failing + failed,
           not_meant = r.not_meant + CASE WHEN quota = '' THEN p_left ELSE 0 END,
           position = CASE WHEN quota = '' THEN coalesce(p_position, r.position) ELSE r.position END,
           exhausted = r.exhausted OR quota = '' AND p_exhausted
      FROM (SELECT count(*) FILTER (WHERE f = 1) AS staged, count(*) FILTER (WHERE f = 4) AS parked,
                   count(*) FILTER (WHERE f = 3) AS duplicate FROM unnest(fates) f) c
     WHERE r.replay_id = p_replay;
END
$$;

-- The keys of what a window took: new ones are first seen at p_moment, known ones change hands.
CREATE FUNCTION tenantry.keep_seen(
    p_tenant text, p_replay text, p_moment timestamptz, p_keys bytea[], p_seen timestamptz[], p_fates smallint[], p_rules text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    today constant date := (p_moment AT TIME ZONE 'UTC')::date;
    fresh bigint;
BEGIN
    -- It is there unless nobody has tidied since yesterday.
    IF to_regclass('tenantry.replay_keys_0_' || to_char(today, 'YYYYMMDD')) IS NULL THEN
        PERFORM tenantry.make_keys(today, today + 1); -- it drops nothing, which would wait for other feeds
    END IF;
    INSERT INTO tenantry.replay_keys (tenant_id, key, seen_at, state, failings, replay_id)
    SELECT p_tenant, u.key, p_moment, CASE u.fate WHEN 1 THEN 1 ELSE 4 END, CASE u.fate WHEN 1 THEN 0 ELSE 1 END, p_replay
      FROM unnest(p_keys, p_seen, p_fates) u (key, seen_at, fate)
     WHERE u.fate IN (1, 4) AND u.seen_at IS NULL;
    GET DIAGNOSTICS fresh = ROW_COUNT;
    IF fresh > 0 THEN
        INSERT INTO tenantry.replay_generations AS g (tenant_id, day, keys) VALUES (p_tenant, today, fresh)
        ON CONFLICT (tenant_id, day) DO UPDATE SET keys = g.keys + fresh;
    END IF;
    PERFORM tenantry.mark_keys(p_tenant, p_replay, true, g.keys, g.seen, g.states, g.failings)
       FROM (SELECT array_agg(key) AS keys, array_agg(seen_at) AS seen,
                    array_agg(CASE fate WHEN 1 THEN 1 ELSE 4 END::smallint) AS states,
                    array_agg(CASE WHEN fate = 4 AND rule <> '' THEN 1 ELSE 0 END) AS failings
               FROM unnest(p_keys, p_seen, p_fates, p_rules) u (key, seen_at, fate, rule)
              WHERE fate IN (1, 4) AND seen_at IS NOT NULL HAVING count(*) > 0) g;
END
$$;

-- A target that words each failure anew makes a class of each: beyond four times as many rows the rare ones are forgotten, but
-- for the deliveries of an origin that is kept. As replay/poison.py CLASSES_KEPT.
CREATE FUNCTION tenantry.forget_rare_classes(p_replay text, p_kept integer DEFAULT 250) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) <= 4 * p_kept FROM tenantry.replay_classes WHERE replay_id = p_replay) THEN RETURN; END IF;
    WITH ranked AS MATERIALIZED (
        SELECT origin, fingerprint, row_number() OVER (
                   PARTITION BY fingerprint = '' ORDER BY failures DESC, delivered DESC, origin, fingerprint) AS place
          FROM tenantry.replay_classes WHERE replay_id = p_replay
    )
    DELETE FROM tenantry.replay_classes c USING ranked r
     WHERE c.replay_id = p_replay AND c.origin = r.origin AND c.fingerprint = r.fingerprint AND r.place > p_kept
       AND (r.fingerprint <> '' OR r.origin NOT IN (SELECT origin FROM ranked WHERE fingerprint <> '' AND place <= p_kept));
END
$$;

-- Take up what was told of a replay's jobs, at most p_limit batches; whether there may be more. The caller has the row of
-- the replay locked. p_faults: the error classes that speak about the message.
CREATE FUNCTION tenantry.fold_ends(p_replay text, p_tenant text, p_limit integer, p_faults text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    batches integer;
    keys    bytea[];
    seen    timestamptz[];
    states  smallint[];
    times   integer[];
BEGIN
    WITH heard AS (
        DELETE FROM tenantry.replay_ends WHERE end_id = ANY (ARRAY(
            SELECT end_id FROM tenantry.replay_ends WHERE replay_id = p_replay ORDER BY end_id LIMIT p_limit))
        RETURNING *
    ), told AS MATERIALIZED (
        SELECT h.end_id, u.* FROM heard h, unnest(h.job_ids, h.kinds, h.error_classes, h.fingerprints) WITH ORDINALITY
               u (job_id, kind, error_class, fingerprint, n)
    ), jobs AS MATERIALIZED (
        SELECT j.*, f.place, f.key, f.seen_at, f.origin, f.parked, f.unknown
          FROM (SELECT t.job_id,
                       (array_agg(t.kind ORDER BY t.end_id DESC, t.n DESC) FILTER (WHERE t.kind IN (1, 2, 3, 6)))[1] AS ended,
                       bool_or(t.kind IN (2, 3)) AS failed, bool_or(t.error_class = 'worker_lost') AS lost,
                       count(*) FILTER (WHERE t.error_class NOT IN ('', 'worker_lost')) AS failures,
                       count(*) FILTER (WHERE t.error_class = ANY (p_faults)) AS faults
                  FROM told t GROUP BY t.job_id) j
         -- OFFSET 0 keeps the look-up a look-up: one probe of the key a job, whatever the statistics say.
         CROSS JOIN LATERAL (SELECT ctid AS place, key, seen_at, origin, parked, unknown FROM tenantry.replay_fed
                              WHERE replay_id = p_replay AND job_id = j.job_id OFFSET 0) f
    ), counted AS (
        UPDATE tenantry.replays r
           SET unended = r.unended - c.out_of_line, delivered = r.delivered + c.delivered, dead = r.dead + c.dead,
               parked = r.parked + c.parked, dropped = r.dropped + c.dropped, unknown = r.unknown + c.lost,
               failures = r.failures + c.failures, message_faults = r.message_faults + c.faults
          FROM (SELECT count(*) FILTER (WHERE ended IS NOT NULL AND NOT parked) AS out_of_line,
                       count(*) FILTER (WHERE ended = 1) AS delivered, count(*) FILTER (WHERE ended = 2) AS dead,
                       count(*) FILTER (WHERE ended IN (3, 6) AND NOT parked) AS parked,
                       count(*) FILTER (WHERE ended = 6) AS dropped, count(*) FILTER (WHERE lost AND NOT unknown) AS lost,
                       coalesce(sum(failures), 0) AS failures, coalesce(sum(faults), 0) AS faults
                  FROM jobs) c
         WHERE r.replay_id = p_replay AND EXISTS (SELECT FROM jobs)
    ), gone AS (
        -- Whoever writes these rows has the replay's row locked, so each stays where it was found.
        DELETE FROM tenantry.replay_fed WHERE ctid = ANY (ARRAY(SELECT place FROM jobs WHERE ended IN (1, 2, 6)))
    ), noted AS (
        UPDATE tenantry.replay_fed d SET parked = d.parked OR j.ended IS NOT NULL, unknown = d.unknown OR j.lost
          FROM jobs j
         WHERE d.ctid = j.place AND (j.ended = 3 OR j.ended IS NULL AND j.lost AND NOT j.unknown)
    ), alike AS (
        SELECT j.origin, t.fingerprint, count(*) AS failures, 0 AS delivered, min(t.job_id::text) AS example
          FROM told t JOIN jobs j USING (job_id)
         WHERE t.fingerprint <> '' AND t.error_class = ANY (p_faults) GROUP BY 1, 2
         UNION ALL
        SELECT origin, '', 0, count(*), '' FROM jobs WHERE ended = 1 GROUP BY 1
    ), classed AS (
        INSERT INTO tenantry.replay_classes AS c (replay_id, origin, fingerprint, tenant_id, failures, delivered, example)
        SELECT p_replay, origin, fingerprint, p_tenant, failures, delivered, example FROM alike
        ON CONFLICT (replay_id, origin, fingerprint) DO UPDATE
           SET failures = c.failures + EXCLUDED.failures, delivered = c.delivered + EXCLUDED.delivered, example = EXCLUDED.example
    )
    SELECT (SELECT count(*) FROM heard), array_agg(key), array_agg(seen_at),
           array_agg(CASE WHEN ended = 1 THEN 2 WHEN lost OR unknown THEN 3 ELSE 4 END::smallint),
           array_agg(failed::integer)
      INTO batches, keys, seen, states, times
      FROM jobs WHERE ended IS NOT NULL;
    PERFORM tenantry.mark_keys(p_tenant, p_replay, false, keys, seen, states, times);
    PERFORM tenantry.forget_rare_classes(p_replay) WHERE batches > 0;
    RETURN batches = p_limit;
END
$$;

-- Under the lease. NULL: it is lost.
CREATE FUNCTION tenantry.fold_replay(p_replay text, p_token bigint, p_limit integer, p_faults text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
    SELECT tenant_id INTO whose FROM tenantry.replays
     WHERE replay_id = p_replay AND token = p_token AND lease_until > clock_timestamp() FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    RETURN tenantry.fold_ends(p_replay, whose, p_limit, p_faults);
END
$$;

-- Where every message of these replays is, at one instant: what was folded, what was told since, what live claims hold.
CREATE FUNCTION tenantry.replay_counts(p_replays text[], p_faults text[]) RETURNS TABLE (
    replay_id text, waiting bigint, in_flight bigint, duplicate bigint, delivered bigint, parked bigint, dropped bigint,
    dead bigint, returned bigint, unknown bigint, not_meant bigint, seen_failing bigint, failures bigint, message_faults bigint
) LANGUAGE sql STABLE AS $$
    WITH told AS MATERIALIZED (
        SELECT e.replay_id, e.end_id, u.*
          FROM unnest(p_replays) g (id)
         CROSS JOIN LATERAL (SELECT * FROM tenantry.replay_ends x WHERE x.replay_id = g.id OFFSET 0) e
         CROSS JOIN LATERAL unnest(e.job_ids, e.kinds, e.error_classes) WITH ORDINALITY u (job_id, kind, error_class, n)
    ), jobs AS (
        SELECT j.*, f.parked AS aside, f.unknown AS known_lost
          FROM (SELECT t.replay_id, t.job_id,
                       (array_agg(t.kind ORDER BY t.end_id DESC, t.n DESC) FILTER (WHERE t.kind IN (1, 2, 3, 6)))[1] AS ended,
                       bool_or(t.error_class = 'worker_lost') AS lost,
                       count(*) FILTER (WHERE t.error_class NOT IN ('', 'worker_lost')) AS failures,
                       count(*) FILTER (WHERE t.error_class = ANY (p_faults)) AS faults
                  FROM told t GROUP BY 1, 2) j
         CROSS JOIN LATERAL (SELECT d.parked, d.unknown FROM tenantry.replay_fed d
                              WHERE d.replay_id = j.replay_id AND d.job_id = j.job_id OFFSET 0) f
    ), since AS (
        SELECT j.replay_id, count(*) FILTER (WHERE ended IS NOT NULL AND NOT aside) AS out_of_line,
               count(*) FILTER (WHERE ended = 1) AS delivered, count(*) FILTER (WHERE ended = 2) AS dead,
               count(*) FILTER (WHERE ended IN (3, 6) AND NOT aside) AS parked, count(*) FILTER (WHERE ended = 6) AS dropped,
               count(*) FILTER (WHERE lost AND NOT known_lost) AS lost, sum(j.failures) AS failures, sum(j.faults) AS faults
          FROM jobs j GROUP BY 1
    ), held AS (
        -- A claim may hold the place of a job that was withdrawn meanwhile: that one is not in flight.
        SELECT f.replay, count(*) AS n
          FROM tenantry.claims c
         CROSS JOIN LATERAL unnest(c.flow_ids, c.seqs) u (flow_id, seq)
         CROSS JOIN LATERAL (SELECT x.replay FROM tenantry.flows x
                              WHERE x.flow_id = u.flow_id AND x.replay = ANY (p_replays) OFFSET 0) f
         CROSS JOIN LATERAL (SELECT FROM tenantry.jobs w WHERE w.flow_id = u.flow_id AND w.seq = u.seq OFFSET 0) j
         GROUP BY 1
    )
    SELECT r.replay_id, r.unended - coalesce(s.out_of_line, 0) - coalesce(h.n, 0), coalesce(h.n, 0), r.duplicate,
           r.delivered + coalesce(s.delivered, 0), r.parked + coalesce(s.parked, 0), r.dropped + coalesce(s.dropped, 0),
           r.dead + coalesce(s.dead, 0), r.returned, r.unknown + coalesce(s.lost, 0), r.not_meant, r.seen_failing,
           r.failures + coalesce(s.failures, 0)::bigint, r.message_faults + coalesce(s.faults, 0)::bigint
      FROM unnest(p_replays) g (id)
     CROSS JOIN LATERAL (SELECT * FROM tenantry.replays x WHERE x.replay_id = g.id OFFSET 0) r
      LEFT JOIN since s ON s.replay_id = r.replay_id
      LEFT JOIN held h ON h.replay = r.replay_id
$$;

-- Give places to replays of the tenant that wait for one, in the order of their starts. Locks the tenant's row.
CREATE FUNCTION tenantry.place_replays(p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    whose tenantry.replay_tenants := tenantry.replay_tenant(p_tenant);
    room  bigint;
BEGIN
    SELECT whose.most_running - count(*) INTO room FROM tenantry.replays
     WHERE tenant_id = p_tenant AND placed AND state IN ('running', 'paused', 'held', 'draining', 'cancelling');
    UPDATE tenantry.replays r SET state = 'running', placed = true, hold_rule = NULL, hold_reason = NULL, frees_at = NULL
     -- Looked at once more under its lock: a person may have paused or cancelled it meanwhile.
     WHERE r.state = 'held' AND r.hold_rule = 'concurrency' AND r.replay_id = ANY (ARRAY(
        SELECT replay_id FROM tenantry.replays
         WHERE tenant_id = p_tenant AND state = 'held' AND hold_rule = 'concurrency'
         ORDER BY started_at, replay_id LIMIT CASE WHEN room IS NULL THEN NULL ELSE greatest(room, 0) END));
END
$$;

-- Under the lease: the tenant's replays that may run at once are p_most now. NULL: it is lost.
CREATE FUNCTION tenantry.admit_replay(p_replay text, p_token bigint, p_most integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    whose text;
BEGIN
    -- The tenant's row first: whoever gives places holds it, and then wants the rows of those that wait, such as this one.
    SELECT tenant_id INTO whose FROM tenantry.replays WHERE replay_id = p_replay;
    IF NOT FOUND THEN RETURN NULL; END IF;
    PERFORM tenantry.replay_tenant(whose);
    PERFORM FROM tenantry.replays
      WHERE replay_id = p_replay AND token = p_token AND lease_until > clock_timestamp() FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    UPDATE tenantry.replay_tenants SET most_running = p_most WHERE tenant_id = whose;
    PERFORM tenantry.place_replays(whose);
    RETURN p_replay;
END
$$;

-- A plan begins to run, or waits for a place. NULL: it is not a plan of this tenant that can be started.
CREATE FUNCTION tenantry.start_replay(p_tenant text, p_replay text, p_most integer, p_kept_for double precision, p_reason text)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenantry.replays SET state = 'held', hold_rule = 'concurrency', hold_reason = p_reason, started_at = clock_timestamp()
     WHERE replay_id = p_replay AND tenant_id = p_tenant AND state = 'planned'
       AND created_at > clock_timestamp() - make_interval(secs => p_kept_for);
    IF NOT FOUND THEN RETURN NULL; END IF;
    INSERT INTO tenantry.replay_terms (replay_id, tenant_id, park_after, hold_unknown)
    SELECT replay_id, tenant_id, park_after, hold_unknown FROM tenantry.replays WHERE replay_id = p_replay;
    PERFORM tenantry.replay_tenant(p_tenant);
    UPDATE tenantry.replay_tenants SET most_running = p_most WHERE tenant_id = p_tenant;
    PERFORM tenantry.place_replays(p_tenant);
    RETURN p_replay;
END
$$;

-- A person's order: 'pause', 'resume', 'continue' or 'cancel', given in one of p_states. NULL: it cannot be given now.
-- After 'continue' failures alike are counted anew.
CREATE FUNCTION tenantry.order_replay(p_tenant text, p_replay text, p_order text, p_states text[], p_reason text, p_faults text[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    mine tenantry.replays;
BEGIN
    SELECT * INTO mine FROM tenantry.replays
     WHERE replay_id = p_replay AND tenant_id = p_tenant AND state = ANY (p_states) FOR NO KEY UPDATE;
    IF NOT FOUND OR p_order = 'continue' AND mine.hold_rule = 'concurrency' THEN RETURN NULL; END IF;
    UPDATE tenantry.replays
       SET state = CASE p_order WHEN 'pause' THEN 'paused' WHEN 'continue' THEN 'running'
                                WHEN 'resume' THEN CASE WHEN placed THEN 'running' ELSE 'held' END
                                ELSE CASE state WHEN 'planned' THEN 'cancelled' ELSE 'cancelling' END END,
           hold_rule = CASE WHEN p_order = 'resume' AND NOT placed THEN 'concurrency' END,
           hold_reason = CASE WHEN p_order = 'resume' AND NOT placed THEN p_reason END,
           frees_at = NULL,
           hold_stops = false,
           sampled = sampled OR p_order = 'continue' AND hold_rule = 'sample',
           ended_at = CASE WHEN p_order = 'cancel' AND state = 'planned' THEN clock_timestamp() END
     WHERE replay_id = p_replay;
    IF p_order = 'continue' THEN
        WHILE tenantry.fold_ends(p_replay, p_tenant, 1000, p_faults) LOOP NULL; END LOOP;
        DELETE FROM tenantry.replay_classes WHERE replay_id = p_replay;
    END IF;
    IF p_order IN ('pause', 'resume', 'cancel') AND mine.state <> 'planned' OR p_order = 'continue' AND mine.hold_stops THEN
        PERFORM tenantry.pause_replay(p_tenant, p_replay, p_order IN ('pause', 'cancel'));
    END IF;
    IF p_order = 'resume' AND NOT mine.placed THEN
        PERFORM tenantry.place_replays(p_tenant);
    END IF;
    RETURN p_replay;
END
$$;

-- The coordinator's move, from one of p_states. NULL: the lease is lost, or a person's order came first. A replay that
-- waits for a place moves nowhere; one that ends has nothing under way, and its place is given on. While a hold lasts that
-- stops what waits, its flows are paused.
CREATE FUNCTION tenantry.move_replay(
    p_replay text, p_token bigint, p_state text, p_states text[], p_rule text, p_reason text, p_frees_at timestamptz,
    p_stops boolean, p_running_for double precision, p_progress text
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    mine tenantry.replays;
    ends constant boolean := p_state IN ('finished', 'cancelled');
    stops boolean;
BEGIN
    SELECT * INTO mine FROM tenantry.replays
     WHERE replay_id = p_replay AND token = p_token AND lease_until > clock_timestamp() AND state = ANY (p_states)
       FOR NO KEY UPDATE;
    IF NOT FOUND OR mine.hold_rule = 'concurrency' AND p_state <> 'held' THEN RETURN NULL; END IF;
    IF ends AND mine.unended > 0 THEN
        RAISE EXCEPTION 'replay % has % messages under way and cannot end', p_replay, mine.unended USING ERRCODE = 'check_violation';
    END IF;
    stops := p_state = 'held' AND p_stops AND mine.hold_rule IS DISTINCT FROM 'concurrency';
    UPDATE tenantry.replays
       SET state = p_state, running_for = p_running_for, progress = p_progress, hold_stops = stops,
           hold_rule = CASE WHEN mine.hold_rule = 'concurrency' THEN mine.hold_rule ELSE p_rule END,
           hold_reason = CASE WHEN mine.hold_rule = 'concurrency' THEN mine.hold_reason ELSE p_reason END,
           frees_at = CASE WHEN mine.hold_rule = 'concurrency' THEN NULL ELSE p_frees_at END,
           ended_at = CASE WHEN ends THEN clock_timestamp() END,
           placed = placed AND NOT ends,
           holder = CASE WHEN ends THEN '' ELSE holder END,
           lease_until = CASE WHEN ends THEN '-infinity' ELSE lease_until END
     WHERE replay_id = p_replay;
    IF stops <> mine.hold_stops THEN
        PERFORM tenantry.pause_replay(mine.tenant_id, p_replay, stops);
    END IF;
    IF ends AND mine.placed THEN
        PERFORM tenantry.place_replays(mine.tenant_id);
    END IF;
    RETURN p_replay;
END
$$;

-- Of a cancelling replay, take up to p_limit messages out of line. NULL: the lease is lost.
CREATE FUNCTION tenantry.return_replay(p_replay text, p_token bigint, p_limit integer, p_faults text[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    whose  text;
    gone   uuid[];
    keys   bytea[];
    seen   timestamptz[];
    states smallint[];
    times  integer[];
BEGIN
    SELECT tenant_id INTO whose FROM tenantry.replays
     WHERE replay_id = p_replay AND token = p_token AND lease_until > clock_timestamp() AND state = 'cancelling'
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    gone := tenantry.withdraw_replay(whose, p_replay, p_limit);
    IF cardinality(gone) = 0 THEN RETURN 0; END IF;
    -- What their last attempts told is taken up while their rows still say whose they are.
    WHILE tenantry.fold_ends(p_replay, whose, 1000, p_faults) LOOP NULL; END LOOP;
    WITH freed AS (
        DELETE FROM tenantry.replay_fed WHERE replay_id = p_replay AND job_id = ANY (gone) RETURNING *
    )
    SELECT array_agg(key), array_agg(seen_at), array_agg(CASE WHEN unknown THEN 3 ELSE 4 END::smallint), array_agg(0)
      INTO keys, seen, states, times FROM freed;
    PERFORM tenantry.mark_keys(whose, p_replay, false, keys, seen, states, times);
    UPDATE tenantry.replays SET returned = returned + cardinality(gone), unended = unended - cardinality(gone)
     WHERE replay_id = p_replay;
    RETURN cardinality(gone);
END
$$;

-- Put a parked message back in line, with other bytes or headers where they are given. An ended replay lives again until
-- it is through; it reads no more of its source. false: it is not there, its replay is being cancelled or was forgotten,
-- or another replay has the message or has delivered it.
CREATE FUNCTION tenantry.send_back(p_tenant text, p_job uuid, p_payload bytea, p_headers jsonb, p_faults text[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    aside tenantry.parked;
    mine  tenantry.replays;
    fed   tenantry.replay_fed;
BEGIN
    SELECT * INTO aside FROM tenantry.parked WHERE job_id = p_job AND tenant_id = p_tenant;
    IF NOT FOUND THEN RETURN false; END IF;
    SELECT * INTO mine FROM tenantry.replays WHERE replay_id = aside.replay_id AND tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND OR mine.state = 'cancelling' THEN RETURN false; END IF;
    PERFORM tenantry.replay_tenant(p_tenant); -- as a feed: nobody stages it meanwhile
    SELECT * INTO aside FROM tenantry.parked WHERE job_id = p_job AND replay_id = mine.replay_id FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    WHILE tenantry.fold_ends(mine.replay_id, p_tenant, 1000, p_faults) LOOP NULL; END LOOP;
    SELECT * INTO fed FROM tenantry.replay_fed WHERE replay_id = mine.replay_id AND job_id = p_job;
    IF EXISTS (SELECT FROM tenantry.replay_tenants t,
                           tenantry.known_keys(p_tenant, ARRAY[fed.key], t.lifetime_for) k
                WHERE t.tenant_id = p_tenant AND k.replay_id <> mine.replay_id AND k.state IN (1, 2)) THEN
        RETURN false;
    END IF;
    PERFORM tenantry.feed_replay(p_tenant, mine.replay_id, ARRAY[aside.target], ARRAY[p_job],
        ARRAY[coalesce(p_payload, aside.payload)], ARRAY[aside.content_type], ARRAY[coalesce(p_headers, aside.headers)],
        ARRAY[aside.attempts]);
    PERFORM tenantry.mark_keys(p_tenant, mine.replay_id, true, ARRAY[fed.key], ARRAY[fed.seen_at], ARRAY[1::smallint], ARRAY[0]);
    UPDATE tenantry.replay_fed SET parked = false WHERE replay_id = mine.replay_id AND job_id = p_job;
    UPDATE tenantry.replays SET parked = parked - 1, unended = unended + 1 WHERE replay_id = mine.replay_id;
    IF mine.state IN ('finished', 'cancelled') THEN
        UPDATE tenantry.replays SET state = 'draining', ended_at = NULL, exhausted = true WHERE replay_id = mine.replay_id;
        PERFORM tenantry.pause_replay(p_tenant, mine.replay_id, false);
    END IF;
    RETURN true;
END
$$;

-- End a parked message as cancelled. false: it is not there.
CREATE FUNCTION tenantry.drop_parked(p_tenant text, p_job uuid, p_keep_key double precision) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM tenantry.parked WHERE job_id = p_job AND tenant_id = p_tenant FOR UPDATE;
    RETURN FOUND AND tenantry.cancel(p_tenant, p_job, p_keep_key) = 'cancelled';
END
$$;

-- Fold what was told of replays that have ended (a parked message of theirs was dropped), and forget plans that nobody
-- started and replays whose end is p_kept_for seconds ago, with their flows, but for those that have parked messages
-- still, or flows that the planner or a worker is yet to hear of.
CREATE FUNCTION tenantry.tidy_replays(p_kept_for double precision, p_plan_for double precision, p_limit integer, p_faults text[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    one     tenantry.replays;
    lines   bigint[];
    removed integer := 0;
BEGIN
    FOR one IN
        SELECT r.* FROM tenantry.replays r
         WHERE r.replay_id = ANY (ARRAY(SELECT DISTINCT e.replay_id FROM tenantry.replay_ends e)) AND r.ended_at IS NOT NULL
         ORDER BY r.replay_id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        WHILE tenantry.fold_ends(one.replay_id, one.tenant_id, 1000, p_faults) LOOP NULL; END LOOP;
    END LOOP;
    FOR one IN
        SELECT r.* FROM tenantry.replays r
         WHERE (r.ended_at < clock_timestamp() - make_interval(secs => p_kept_for)
                OR r.state = 'planned' AND r.created_at < clock_timestamp() - make_interval(secs => p_plan_for))
           AND NOT EXISTS (SELECT FROM tenantry.parked p WHERE p.replay_id = r.replay_id)
           AND NOT EXISTS (
            SELECT FROM tenantry.flows f
             WHERE f.replay = r.replay_id AND f.replay <> ''
               AND (EXISTS (SELECT FROM tenantry.jobs j WHERE j.flow_id = f.flow_id)
                    OR f.flow_id IN (SELECT unnest(c.flow_ids) FROM tenantry.claims c)
                    OR f.flow_id IN (SELECT g.flow_id FROM tenantry.changes g UNION ALL SELECT unnest(g.flow_ids) FROM tenantry.changes g)))
         ORDER BY r.replay_id LIMIT p_limit FOR UPDATE SKIP LOCKED
    LOOP
        DELETE FROM tenantry.replay_classes WHERE replay_id = one.replay_id;
        DELETE FROM tenantry.replay_terms WHERE replay_id = one.replay_id;
        DELETE FROM tenantry.replay_fed WHERE replay_id = one.replay_id;
        -- What was left behind by places that a person emptied goes too; the planner knows of nothing that waits there.
        lines := ARRAY(SELECT flow_id FROM tenantry.flows WHERE replay = one.replay_id AND replay <> '');
        DELETE FROM tenantry.withdrawn WHERE flow_id = ANY (lines);
        DELETE FROM tenantry.tails WHERE flow_id = ANY (lines);
        DELETE FROM tenantry.flows WHERE flow_id = ANY (lines);
        DELETE FROM tenantry.replays WHERE replay_id = one.replay_id;
        removed := removed + 1;
    END LOOP;
    RETURN removed;
END
$$;

REVOKE ALL ON FUNCTION tenantry.replay_tenant, tenantry.known_keys, tenantry.mark_keys, tenantry.park_fed, tenantry.feed_window,
    tenantry.keep_seen, tenantry.forget_rare_classes, tenantry.fold_ends, tenantry.fold_replay, tenantry.replay_counts, tenantry.place_replays, tenantry.admit_replay,
    tenantry.start_replay, tenantry.order_replay, tenantry.move_replay, tenantry.return_replay, tenantry.send_back,
    tenantry.drop_parked, tenantry.tidy_replays FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.replay_tenant, tenantry.known_keys, tenantry.mark_keys, tenantry.park_fed, tenantry.feed_window,
    tenantry.keep_seen, tenantry.forget_rare_classes, tenantry.fold_ends, tenantry.fold_replay, tenantry.replay_counts, tenantry.place_replays, tenantry.admit_replay,
    tenantry.start_replay, tenantry.order_replay, tenantry.move_replay, tenantry.return_replay, tenantry.send_back,
    tenantry.drop_parked, tenantry.tidy_replays TO tenantry_engine;
GRANT EXECUTE ON FUNCTION tenantry.known_keys TO tenantry_tenant;
GRANT EXECUTE ON FUNCTION tenantry.cancel TO tenantry_engine;

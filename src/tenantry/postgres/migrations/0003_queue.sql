-- The queue as a durable log. Who writes what:
--   tails, load.accepted, jobs (append), deferred (delayed)   whoever submits, as the tenant
--   flows.head, claims (append), endings                      the planner alone, holding `place`
--   claims (renew, take, settle), jobs (delete), outcomes     the worker that holds the claim
-- Nothing is updated per job: a job is appended once and deleted at its end.

CREATE TABLE tenantry.lanes (
    lane_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text    NOT NULL,
    target    text    NOT NULL,
    paused    boolean NOT NULL DEFAULT false,
    UNIQUE (tenant_id, target)
);

-- One class, or one replay, in one lane; bucket >= 0 is an ordered flow (one job in flight).
CREATE TABLE tenantry.flows (
    flow_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane_id   bigint   NOT NULL REFERENCES tenantry.lanes,
    tenant_id text     NOT NULL,
    job_class smallint NOT NULL,
    replay    text     NOT NULL DEFAULT '',
    bucket    smallint NOT NULL DEFAULT -1,
    head      bigint   NOT NULL DEFAULT 1, -- the next seq to claim
    UNIQUE (lane_id, job_class, replay, bucket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Apart from flows, so that submitters and the planner never write the same row.
CREATE TABLE tenantry.tails (
    flow_id   bigint PRIMARY KEY REFERENCES tenantry.flows,
    tenant_id text   NOT NULL,
    tail      bigint NOT NULL DEFAULT 0 -- the last seq given; gapless, in commit order (the row lock is held until COMMIT)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The bound counts load.accepted - endings.ended. The lock of a row of load serialises one tenant's submits, and is
-- held to their COMMIT; so what the planner writes is a row of its own, or a slow submit would hold up every round.
CREATE TABLE tenantry.load (
    tenant_id text   PRIMARY KEY,
    accepted  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE tenantry.endings (
    tenant_id text   PRIMARY KEY,
    ended     bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE tenantry.jobs (
    flow_id      bigint      NOT NULL,
    seq          bigint      NOT NULL,
    job_id       uuid        NOT NULL,
    tenant_id    text        NOT NULL,
    payload      bytea       NOT NULL,
    content_type text        NOT NULL,
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    bulk_id      uuid,
    has_key      boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (flow_id, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE UNIQUE INDEX jobs_id ON tenantry.jobs (job_id);

-- Jobs that are out of line until due_at: submitted with a delay, between attempts, or given back.
CREATE TABLE tenantry.deferred (
    flow_id   bigint      NOT NULL,
    seq       bigint      NOT NULL,
    tenant_id text        NOT NULL,
    due_at    timestamptz NOT NULL,
    attempts  smallint    NOT NULL,
    first     boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (flow_id, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Places in line that a cancel emptied before the head passed them.
CREATE TABLE tenantry.withdrawn (
    flow_id   bigint NOT NULL,
    seq       bigint NOT NULL,
    tenant_id text   NOT NULL,
    PRIMARY KEY (flow_id, seq)
);

-- One failed attempt each; deleted when the job is delivered, moved into dead_letters when it dies.
CREATE TABLE tenantry.attempts (
    job_id      uuid        NOT NULL,
    number      smallint    NOT NULL,
    tenant_id   text        NOT NULL,
    ended_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    busy_for    real        NOT NULL,
    status      smallint,
    error_class text        NOT NULL,
    excerpt     text        NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, number)
);

CREATE SEQUENCE tenantry.fencing;

-- What one node holds of one round. In flight is what these rows hold, and nothing else (law K3).
CREATE TABLE tenantry.claims (
    claim_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token       bigint      NOT NULL DEFAULT nextval('tenantry.fencing'),
    node_id     text        NOT NULL,
    incarnation integer     NOT NULL,
    claimed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz NOT NULL,
    started     boolean     NOT NULL DEFAULT false,
    flow_ids    bigint[]    NOT NULL,
    seqs        bigint[]    NOT NULL,
    attempts    smallint[]  NOT NULL,
    due         jsonb -- when those of them that had been deferred fell due: {"flow/seq": epoch}; NULL for none
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX claims_node ON tenantry.claims (node_id, claim_id);

-- What the planner has not heard yet. Consumed by DELETE … RETURNING, never by cursor: ids commit out of order.
--   kind 1 submitted: flow_id, first_seq, count, cost; and, for delayed jobs, the arrays with due_at
--   kind 2 left:      the arrays; due_at NULL for a job that has ended
--   kind 3 withdrawn: flow_id, seqs
--   kind 4 lane:      lane_id
--   kind 5 nodes
-- ended_tenants/ended_counts: how many jobs of whom ended with this change; the round adds them to endings.
CREATE TABLE tenantry.changes (
    change_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          smallint NOT NULL,
    tenant_id     text, -- the tenant whose transaction wrote it, where one did
    flow_id       bigint,
    lane_id       bigint,
    first_seq     bigint,
    count         integer,
    cost          real,
    flow_ids      bigint[],
    seqs          bigint[],
    busy          real[],
    due_at        timestamptz[],
    attempts      smallint[],
    first         boolean[],
    ended_tenants text[],
    ended_counts  integer[]
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The planner's place: one row. Term rises with each taking; every write of a planner names its term.
CREATE TABLE tenantry.place (
    singleton  boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    term       bigint      NOT NULL DEFAULT 0,
    holder     text        NOT NULL DEFAULT '',
    expires_at timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);
INSERT INTO tenantry.place DEFAULT VALUES;

-- The term that is served, in a table that PostgreSQL itself empties after a crash and does not have on a standby that
-- takes over. Both may undo rounds that the planner was told of (its sessions do not wait for the disk), and behind a
-- PgBouncer it would not even notice: a term that is not here is over.
CREATE UNLOGGED TABLE tenantry.served_term (
    term bigint NOT NULL
);

CREATE TABLE tenantry.nodes (
    node_id     text PRIMARY KEY,
    incarnation integer     NOT NULL DEFAULT 1,
    pool        text        NOT NULL,
    slots       integer     NOT NULL,
    kinds       text[]      NOT NULL,
    draining    boolean     NOT NULL DEFAULT false,
    seen_at     timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tenantry.idempotency (
    tenant_id  text  NOT NULL,
    key_hash   bytea NOT NULL,
    body_hash  bytea NOT NULL,
    job_id     uuid  NOT NULL,
    expires_at timestamptz, -- NULL while its job lives
    PRIMARY KEY (tenant_id, key_hash)
);
CREATE INDEX idempotency_job ON tenantry.idempotency (job_id);
CREATE INDEX idempotency_expiry ON tenantry.idempotency (expires_at) WHERE expires_at IS NOT NULL;

-- How jobs ended: narrow rows in daily partitions, dropped whole after seven days. state: 1 delivered, 2 dead, 3 cancelled.
CREATE TABLE tenantry.outcomes (
    job_id    uuid        NOT NULL,
    tenant_id text        NOT NULL,
    state     smallint    NOT NULL,
    attempts  smallint    NOT NULL,
    status    smallint,
    bulk_id   uuid,
    ended_at  timestamptz NOT NULL
) PARTITION BY RANGE (ended_at);
CREATE INDEX outcomes_job ON tenantry.outcomes (job_id);
CREATE INDEX outcomes_tenant ON tenantry.outcomes (tenant_id, job_id);
CREATE INDEX outcomes_bulk ON tenantry.outcomes (bulk_id) WHERE bulk_id IS NOT NULL;

CREATE TABLE tenantry.dead_letters (
    job_id       uuid PRIMARY KEY,
    tenant_id    text        NOT NULL,
    target       text        NOT NULL,
    job_class    smallint    NOT NULL,
    payload      bytea       NOT NULL,
    content_type text        NOT NULL,
    submitted_at timestamptz NOT NULL,
    died_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts     smallint    NOT NULL,
    status       smallint,
    reason       text        NOT NULL,
    history      jsonb       NOT NULL DEFAULT '[]'
);
CREATE INDEX dead_letters_tenant ON tenantry.dead_letters (tenant_id, died_at);

CREATE TABLE tenantry.bulk_sets (
    bulk_id    uuid PRIMARY KEY,
    tenant_id  text        NOT NULL,
    total      integer     NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    delivered  integer     NOT NULL DEFAULT 0, -- ends whose outcomes have been dropped; the others are counted there
    dead       integer     NOT NULL DEFAULT 0,
    cancelled  integer     NOT NULL DEFAULT 0
);
CREATE INDEX bulk_sets_over ON tenantry.bulk_sets (bulk_id) WHERE delivered + dead + cancelled = total;

-- Accepted, but not in line yet: bulk sets (fed as room appears) and jobs of callers' own transactions
-- (bulk_id NULL: their bound is reserved when they are fed; what is over it is dead-lettered).
CREATE TABLE tenantry.stored (
    stored_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    text     NOT NULL,
    bulk_id      uuid REFERENCES tenantry.bulk_sets ON DELETE CASCADE,
    job_id       uuid     NOT NULL,
    target       text     NOT NULL,
    job_class    smallint NOT NULL,
    bucket       smallint NOT NULL,
    payload      bytea    NOT NULL,
    content_type text     NOT NULL,
    due_at       timestamptz,
    cost         real,
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX stored_tenant ON tenantry.stored (tenant_id, stored_id);
CREATE UNIQUE INDEX stored_job ON tenantry.stored (job_id);
CREATE INDEX stored_bulk ON tenantry.stored (bulk_id) WHERE bulk_id IS NOT NULL;

-- Policies. A tenant sees and writes what carries its id, and nothing when no tenant is bound: the setting reads
-- as '' after a first SET LOCAL in a session, hence NULLIF. The engine's login is the one named exception; its
-- policy is constant and folds away.
DO $$
DECLARE
    name text;
    bound constant text := 'tenant_id = NULLIF(current_setting(''tenantry.tenant_id'', true), '''')';
BEGIN
    FOREACH name IN ARRAY ARRAY['lanes', 'flows', 'tails', 'load', 'endings', 'jobs', 'deferred', 'withdrawn', 'attempts', 'claims',
                                'changes', 'idempotency', 'outcomes', 'dead_letters', 'bulk_sets', 'stored'] LOOP
        EXECUTE format('ALTER TABLE tenantry.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE tenantry.%I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY engine ON tenantry.%I TO tenantry_engine USING (true) WITH CHECK (true)', name);
        IF name NOT IN ('claims', 'changes') THEN
            EXECUTE format('CREATE POLICY tenant ON tenantry.%I TO tenantry_tenant USING (%s) WITH CHECK (%s)',
                           name, bound, bound);
        END IF;
    END LOOP;
    -- Changes are told, never read: a tenant's transaction appends those of its own submits.
    EXECUTE format('CREATE POLICY tenant ON tenantry.changes FOR INSERT TO tenantry_tenant WITH CHECK (%s)', bound);
END
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tenantry TO tenantry_engine;
REVOKE INSERT, UPDATE, DELETE ON tenantry.registry, tenantry.tiers, tenantry.tenants, tenantry.api_keys,
    tenantry.migrations FROM tenantry_engine;
GRANT USAGE ON SEQUENCE tenantry.fencing TO tenantry_engine;

GRANT SELECT ON tenantry.lanes, tenantry.flows, tenantry.tails, tenantry.load, tenantry.endings, tenantry.jobs, tenantry.deferred,
    tenantry.attempts, tenantry.idempotency, tenantry.outcomes, tenantry.dead_letters, tenantry.bulk_sets,
    tenantry.stored TO tenantry_tenant;
GRANT INSERT ON tenantry.tails, tenantry.load, tenantry.jobs, tenantry.deferred, tenantry.withdrawn, tenantry.idempotency,
    tenantry.outcomes, tenantry.bulk_sets TO tenantry_tenant;
-- Not into what the server numbers: OVERRIDING SYSTEM VALUE would let a tenant try out, or take, the others' numbers.
GRANT INSERT (tenant_id, target) ON tenantry.lanes TO tenantry_tenant;
GRANT INSERT (lane_id, tenant_id, job_class, bucket) ON tenantry.flows TO tenantry_tenant;
GRANT INSERT (kind, tenant_id, flow_id, first_seq, count, cost, seqs, due_at, ended_tenants, ended_counts)
    ON tenantry.changes TO tenantry_tenant;
GRANT INSERT (tenant_id, bulk_id, job_id, target, job_class, bucket, payload, content_type, due_at, cost)
    ON tenantry.stored TO tenantry_tenant;
GRANT UPDATE (tail) ON tenantry.tails TO tenantry_tenant;
GRANT UPDATE (accepted) ON tenantry.load TO tenantry_tenant;
GRANT UPDATE (expires_at) ON tenantry.idempotency TO tenantry_tenant;
-- Cancel: the row of the flow is locked (so that the head cannot pass) and the job deleted.
GRANT UPDATE (bucket) ON tenantry.flows TO tenantry_tenant;
GRANT DELETE ON tenantry.jobs, tenantry.deferred, tenantry.stored, tenantry.attempts TO tenantry_tenant;

-- Daily partitions of outcomes. Owned by the owner of the tables, since only an owner may make and drop them;
-- the search_path is pinned, since whoever calls runs with the owner's rights. A week ahead: an outcome without a
-- partition could not be recorded. Never waits long for its locks: what it could not do now is done a minute later.
CREATE FUNCTION tenantry.roll_outcomes(keep_days integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    today   constant date := (now() AT TIME ZONE 'UTC')::date; -- the transaction's: tidy_outcomes reckons by it as well
    day     date;
    part    record;
    changed integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(8391162081467360889);
    FOR day IN SELECT today + n FROM generate_series(-1, 7) n LOOP
        IF to_regclass(format('tenantry.%I', 'outcomes_' || to_char(day, 'YYYYMMDD'))) IS NULL THEN
            EXECUTE format('CREATE TABLE tenantry.%I PARTITION OF tenantry.outcomes FOR VALUES FROM (%L) TO (%L)',
                           'outcomes_' || to_char(day, 'YYYYMMDD'),
                           (day::timestamp AT TIME ZONE 'UTC'), ((day + 1)::timestamp AT TIME ZONE 'UTC'));
            EXECUTE format('ALTER TABLE tenantry.%I ENABLE ROW LEVEL SECURITY', 'outcomes_' || to_char(day, 'YYYYMMDD'));
            EXECUTE format('ALTER TABLE tenantry.%I FORCE ROW LEVEL SECURITY', 'outcomes_' || to_char(day, 'YYYYMMDD'));
            changed := changed + 1;
        END IF;
    END LOOP;
    FOR part IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'tenantry.outcomes'::regclass AND c.relname ~ '^outcomes_\d{8}$'
           AND to_date(right(c.relname, 8), 'YYYYMMDD') < today - keep_days
    LOOP
        EXECUTE format('DROP TABLE tenantry.%I', part.relname);
        changed := changed + 1;
    END LOOP;
    RETURN changed;
END
$$;
REVOKE ALL ON FUNCTION tenantry.roll_outcomes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenantry.roll_outcomes TO tenantry_engine;
SELECT tenantry.roll_outcomes(7);

-- Statements of the engine find rows by key, one probe a row. A plan that reads a table whole is always wrong, whatever
-- the statistics of a table that was empty a second ago say, and a cached one would stay. What needs whole tables
-- (rebuild, audit) turns sequential scans on for its transaction.
DO $$
DECLARE
    wanted constant text[] := ARRAY['enable_seqscan=off', 'plan_cache_mode=force_generic_plan', 'jit=off'];
    setting text;
BEGIN
    IF wanted <@ (SELECT coalesce(rolconfig, '{}') FROM pg_catalog.pg_roles WHERE rolname = 'tenantry_engine') THEN
        RETURN; -- set by an operator, or by another database of this server
    END IF;
    FOREACH setting IN ARRAY wanted LOOP
        EXECUTE format('ALTER ROLE tenantry_engine SET %s', replace(setting, '=', ' = '));
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the role tenantry_engine lacks its settings, and % may not change roles', current_user
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'As a superuser, run: ALTER ROLE tenantry_engine SET enable_seqscan = off; '
                     'ALTER ROLE tenantry_engine SET plan_cache_mode = force_generic_plan; '
                     'ALTER ROLE tenantry_engine SET jit = off; then migrate again.';
END
$$;

-- The operator's registry as every node reads it, and the tenants' API keys. Tenants may read none of it.

CREATE TABLE tenantry.registry (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version   bigint  NOT NULL DEFAULT 0,
    floor     real    NOT NULL DEFAULT 0.25
);
INSERT INTO tenantry.registry DEFAULT VALUES;

CREATE TABLE tenantry.tiers (
    name     text PRIMARY KEY,
    position integer NOT NULL,
    settings jsonb   NOT NULL
);

CREATE TABLE tenantry.tenants (
    tenant_id text PRIMARY KEY,
    folded    text NOT NULL UNIQUE, -- no two ids alike when case is folded
    tier      text NOT NULL REFERENCES tenantry.tiers,
    document  jsonb NOT NULL
);

CREATE TABLE tenantry.api_keys (
    key_id      text PRIMARY KEY,
    tenant_id   text        NOT NULL REFERENCES tenantry.tenants ON DELETE CASCADE,
    secret_hash bytea       NOT NULL,
    note        text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz,
    revoked_at  timestamptz
);
CREATE INDEX api_keys_tenant ON tenantry.api_keys (tenant_id);

GRANT SELECT ON tenantry.registry, tenantry.tiers, tenantry.tenants, tenantry.api_keys TO tenantry_engine;

-- Rows of tenants are under policies for everyone, the owner included. The engine's login is the named exception.
ALTER TABLE tenantry.tenants  ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenantry.tenants  FORCE ROW LEVEL SECURITY;
ALTER TABLE tenantry.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenantry.api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY engine ON tenantry.tenants  TO tenantry_engine USING (true);
CREATE POLICY engine ON tenantry.api_keys TO tenantry_engine USING (true);

-- The operator writes the registry as the owner of the schema; FORCE makes owners subject to policies too.
DO $$
BEGIN
    EXECUTE format('CREATE POLICY operator ON tenantry.tenants  TO %I USING (true) WITH CHECK (true)', current_user);
    EXECUTE format('CREATE POLICY operator ON tenantry.api_keys TO %I USING (true) WITH CHECK (true)', current_user);
END
$$;

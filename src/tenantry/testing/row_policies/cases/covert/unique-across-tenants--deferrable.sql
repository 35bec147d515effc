-- A constraint that can be deferred: ON CONFLICT cannot name it, but it still tells of the others' values.
-- @common
CREATE TABLE accounts (tenant_id int NOT NULL, id int NOT NULL, email text NOT NULL, PRIMARY KEY (tenant_id, id));
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON accounts USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT, INSERT, UPDATE, DELETE ON accounts TO shop_app;
-- @broken
ALTER TABLE accounts ADD CONSTRAINT one_email UNIQUE (email) DEFERRABLE;
-- @right
ALTER TABLE accounts ADD CONSTRAINT one_email UNIQUE (tenant_id, email) DEFERRABLE;

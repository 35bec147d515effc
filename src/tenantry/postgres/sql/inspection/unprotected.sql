-- Tables of ours that carry a tenant and whose row policies are off, not forced, or missing. A partition that no role
-- but its owner may read is reached through its parent alone, whose policies hold: it needs none of its own.
SELECT c.relname AS name, c.relrowsecurity AS enabled, c.relforcerowsecurity AS forced,
       EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid) OR c.relispartition AS has_policy
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'tenantry' AND c.relkind IN ('r', 'p')
   AND EXISTS (SELECT FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
   AND NOT (c.relrowsecurity AND c.relforcerowsecurity
            AND (c.relispartition OR EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid)))
 ORDER BY c.relname

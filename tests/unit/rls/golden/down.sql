-- Takes it back

-- take back: read public.totals as who asks
BEGIN;
SET LOCAL lock_timeout = '2000ms';
SET LOCAL statement_timeout = '7000ms';
ALTER VIEW public.totals RESET (security_invoker);
COMMIT;

-- take back: share public.countries, to be read only
BEGIN;
SET LOCAL lock_timeout = '2000ms';
SET LOCAL statement_timeout = '7000ms';
REVOKE SELECT ON TABLE public.countries FROM app_user;
COMMIT;

-- take back: protect public.notes
BEGIN;
SET LOCAL lock_timeout = '2000ms';
SET LOCAL statement_timeout = '7000ms';
REVOKE SELECT, INSERT, UPDATE, DELETE ON TABLE public.notes FROM app_user;
ALTER TABLE public.notes NO FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS tenant_isolation ON public.notes;
DROP POLICY IF EXISTS service_access ON public.notes;
DROP POLICY IF EXISTS old ON public.notes;
CREATE POLICY old ON public.notes AS PERMISSIVE FOR SELECT
  TO app_user
  USING ((id > 0));
COMMIT;

-- take back: protect public.invoices
BEGIN;
SET LOCAL lock_timeout = '2000ms';
SET LOCAL statement_timeout = '7000ms';
GRANT TRUNCATE ON TABLE public.invoices TO app_user;
REVOKE INSERT, UPDATE, DELETE ON TABLE public.invoices FROM app_user;
ALTER TABLE public.invoices NO FORCE ROW LEVEL SECURITY;
ALTER TABLE public.invoices DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS tenant_isolation ON public.invoices;
DROP POLICY IF EXISTS service_access ON public.invoices;
COMMIT;

-- take back: index public.notes by its tenant
-- outside of transactions
SET lock_timeout = '600000ms';
DROP INDEX CONCURRENTLY IF EXISTS public.notes_tenant_id_idx;
RESET lock_timeout;

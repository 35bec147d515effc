-- Stored work is not in line yet: its bulk set counts it.
WITH held AS (
    SELECT count(*) AS n FROM tenantry.claims c, unnest(c.flow_ids, c.seqs) u (flow_id, seq)
      JOIN tenantry.jobs j USING (flow_id, seq)
), later AS (
    SELECT count(*) AS n FROM tenantry.deferred WHERE due_at > clock_timestamp()
), living AS (
    SELECT count(*) AS n FROM tenantry.jobs
), aside AS (
    SELECT count(*) AS n FROM tenantry.parked
), ends AS (
    SELECT count(*) FILTER (WHERE state = 1) AS delivered, count(*) FILTER (WHERE state = 2) AS dead,
           count(*) FILTER (WHERE state = 3) AS cancelled
      FROM tenantry.outcomes
)
SELECT living.n - held.n - later.n AS waiting, later.n AS delayed, held.n AS running, aside.n AS parked, ends.*
  FROM held, later, living, aside, ends

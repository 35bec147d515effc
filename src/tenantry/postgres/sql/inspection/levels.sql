-- The pools that shed, by name. What no planner has said lately means nothing: its own clock decides.
SELECT pool, level, age, used, falls_in,
       extract(epoch FROM clock_timestamp() - changed_at)::float8 AS stands_for,
       extract(epoch FROM expires_at - clock_timestamp())::float8 AS fresh_for
  FROM tenantry.shedding
 WHERE level > 0 AND expires_at > clock_timestamp()
 ORDER BY pool

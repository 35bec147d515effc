-- $1 term, $2 seconds for which it is good; $3..$7 one row a pool: name, level, age, part of slots in use, and seconds in
-- which it can have fallen. Nothing when the place is lost.
WITH place AS MATERIALIZED (
    SELECT term FROM tenantry.place
     WHERE term = $1 AND expires_at > clock_timestamp() AND EXISTS (SELECT FROM tenantry.served_term s WHERE s.term = $1)
       FOR SHARE
), kept AS (
    INSERT INTO tenantry.shedding AS s (pool, level, age, used, falls_in, changed_at, expires_at)
    SELECT g.pool, g.level, g.age, g.used, g.falls_in, clock_timestamp(),
           clock_timestamp() + make_interval(secs => $2::float8)
      FROM place, unnest($3::text[], $4::smallint[], $5::float8[], $6::float8[], $7::float8[])
           g (pool, level, age, used, falls_in)
     ORDER BY g.pool
    ON CONFLICT (pool) DO UPDATE
       SET level = EXCLUDED.level, age = EXCLUDED.age, used = EXCLUDED.used, falls_in = EXCLUDED.falls_in,
           -- since when: a level that ran out meanwhile begins anew
           changed_at = CASE WHEN s.level = EXCLUDED.level AND s.expires_at > clock_timestamp()
                             THEN s.changed_at ELSE EXCLUDED.changed_at END,
           expires_at = EXCLUDED.expires_at
)
SELECT term FROM place

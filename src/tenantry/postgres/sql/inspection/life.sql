-- Who plans, and how far ahead there are partitions for the ends of jobs.
SELECT p.term, p.holder, p.expires_at > clock_timestamp() AS held,
       (SELECT count(*) FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'tenantry.outcomes'::regclass
           AND right(c.relname, 8) > to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')) AS days_ahead,
       EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'tenantry.outcomes'::regclass
           AND right(c.relname, 8) = to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')) AS today
  FROM tenantry.place p

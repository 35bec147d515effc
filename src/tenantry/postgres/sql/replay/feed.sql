-- One window under a lease; tenantry.feed_window says what each argument is. Its commit waits for the disk, though the
-- engine's others do not: what is acknowledged to a source after it must outlive a crash of the server.
WITH durably AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'on', true)
)
SELECT f.fates, f.quota, f.used, f.frees_at
  FROM durably,
       tenantry.feed_window($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) f

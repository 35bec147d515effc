-- One window under a lease; tenantry.feed_window says what each argument is.
SELECT fates, quota, used, frees_at
  FROM tenantry.feed_window($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)

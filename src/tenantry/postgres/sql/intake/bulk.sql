-- One bulk set of the bound tenant. $1 its id. An end is counted in its row, or on the set once that is dropped.
SELECT b.bulk_id, b.total, b.created_at,
       (SELECT count(*) FROM tenantry.stored s WHERE s.bulk_id = b.bulk_id) AS stored,
       b.delivered + count(o.job_id) FILTER (WHERE o.state = 1) AS delivered,
       b.dead + count(o.job_id) FILTER (WHERE o.state = 2) AS dead,
       b.cancelled + count(o.job_id) FILTER (WHERE o.state = 3) AS cancelled
  FROM tenantry.bulk_sets b LEFT JOIN tenantry.outcomes o ON o.bulk_id = b.bulk_id
 WHERE b.bulk_id = $1
 GROUP BY b.bulk_id

-- $1 tenant, $2 target (NULL: any), $3 'backlog' or 'in_flight', $4 at most so many, $5 state (NULL: any). Reads every
-- flow once, and no job.
WITH held AS (
    SELECT u.flow_id, count(*) AS n FROM tenantry.claims c, unnest(c.flow_ids) u (flow_id) GROUP BY 1
), aside AS (
    -- Behind the head a deferred job is not counted between head and tail.
    SELECT d.flow_id, count(*) FILTER (WHERE d.seq < f.head) AS n
      FROM tenantry.deferred d JOIN tenantry.flows f USING (flow_id) GROUP BY 1
), gone AS (
    SELECT w.flow_id, count(*) AS n FROM tenantry.withdrawn w JOIN tenantry.flows f USING (flow_id)
     WHERE w.seq >= f.head GROUP BY 1
), work AS (
    SELECT f.lane_id, coalesce(sum(h.n), 0) AS in_flight,
           sum(greatest(0, t.tail - f.head + 1 + coalesce(a.n, 0) - coalesce(g.n, 0))) AS backlog
      FROM tenantry.flows f JOIN tenantry.tails t USING (flow_id)
      LEFT JOIN held h USING (flow_id) LEFT JOIN aside a USING (flow_id) LEFT JOIN gone g USING (flow_id)
     GROUP BY 1
)
SELECT l.lane_id
  FROM tenantry.lanes l LEFT JOIN work w USING (lane_id)
 WHERE ($1::text IS NULL OR l.tenant_id = $1) AND ($2::text IS NULL OR l.target = $2)
   AND ($5::text IS NULL OR tenantry.lane_state(l.lane_id, l.tenant_id, l.target) = $5)
 ORDER BY CASE $3::text WHEN 'backlog' THEN coalesce(w.backlog, 0) ELSE coalesce(w.in_flight, 0) END DESC,
          l.tenant_id, l.target
 LIMIT $4

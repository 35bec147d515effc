-- What surrounds one job ($2) of one tenant ($1), whose tier is served by pool $3; $4 how long a heartbeat is fresh, in
-- seconds. Whose work waits in which pool only the directory knows, so the waiting are named; the answer never is.
WITH held AS (
    SELECT u.flow_id, count(*) AS n FROM tenantry.claims c, unnest(c.flow_ids) u (flow_id) GROUP BY 1
), used AS (
    SELECT coalesce(sum(cardinality(c.seqs)), 0) AS n FROM tenantry.claims c JOIN tenantry.nodes n USING (node_id)
     WHERE n.pool = $3
), mine AS (
    SELECT j.flow_id, j.seq, f.lane_id, f.head, f.bucket, l.target, d.due_at, d.attempts
      FROM tenantry.jobs j
      JOIN tenantry.flows f USING (flow_id)
      JOIN tenantry.lanes l USING (lane_id)
      LEFT JOIN tenantry.deferred d ON d.flow_id = j.flow_id AND d.seq = j.seq
     WHERE j.job_id = $2 AND j.tenant_id = $1
), slots AS (
    SELECT n.slots, n.kinds FROM tenantry.nodes n
     WHERE n.pool = $3 AND NOT n.draining AND n.seen_at > clock_timestamp() - make_interval(secs => $4::float8)
), later AS (
    -- Deferred jobs that are still counted between head and tail, and those that are due and are not.
    SELECT d.flow_id, count(*) FILTER (WHERE d.seq >= f.head AND d.due_at > clock_timestamp())
                    - count(*) FILTER (WHERE d.seq < f.head AND d.due_at <= clock_timestamp()) AS n
      FROM tenantry.deferred d JOIN tenantry.flows f USING (flow_id) GROUP BY 1
), gone AS (
    SELECT flow_id, count(*) AS n FROM tenantry.withdrawn GROUP BY 1
), standing AS (
    SELECT f.tenant_id, f.lane_id, f.flow_id, coalesce(h.n, 0) AS running,
           greatest(0, t.tail - f.head + 1 - coalesce(l.n, 0) - coalesce(g.n, 0)) AS waiting
      FROM tenantry.flows f JOIN tenantry.tails t USING (flow_id)
      LEFT JOIN held h USING (flow_id) LEFT JOIN later l USING (flow_id) LEFT JOIN gone g USING (flow_id)
)
SELECT clock_timestamp() AS moment, m.target, m.due_at, m.bucket, tenantry.orders_over($1, m.target) AS orders,
       (SELECT state FROM tenantry.shapers s WHERE s.lane_id = m.lane_id) AS shaper,
       CASE WHEN m.due_at > clock_timestamp() THEN 'delayed'
            WHEN m.due_at IS NOT NULL OR m.seq >= m.head THEN 'waiting' ELSE 'running' END AS state,
       (SELECT count(*) FROM tenantry.attempts a WHERE a.job_id = $2) AS attempts,
       greatest(0, m.seq - m.head
           - (SELECT count(*) FROM tenantry.deferred d
               WHERE d.flow_id = m.flow_id AND d.seq >= m.head AND d.seq < m.seq AND d.due_at > clock_timestamp())
           - (SELECT count(*) FROM tenantry.withdrawn w
               WHERE w.flow_id = m.flow_id AND w.seq >= m.head AND w.seq < m.seq)) AS ahead,
       (SELECT coalesce(sum(running), 0) FROM standing s WHERE s.flow_id = m.flow_id) AS flow_running,
       (SELECT coalesce(sum(running), 0) FROM standing s WHERE s.lane_id = m.lane_id) AS lane_running,
       (SELECT coalesce(sum(running), 0) FROM standing s WHERE s.tenant_id = $1) AS tenant_running,
       (SELECT coalesce(sum(waiting), 0) FROM standing s WHERE s.tenant_id = $1) AS tenant_waiting,
       ARRAY(SELECT DISTINCT tenant_id FROM standing WHERE waiting > 0) AS waiting,
       (SELECT n FROM used) AS running,
       (SELECT coalesce(sum(slots), 0) FROM slots) AS slots,
       (SELECT coalesce(sum(slots), 0) FROM slots
         WHERE CASE WHEN m.target LIKE 'handler:%' THEN m.target ELSE 'http' END = ANY (kinds)) AS slots_of_kind,
       (SELECT expires_at > clock_timestamp() FROM tenantry.place) AS planner,
       coalesce((SELECT level FROM tenantry.shedding WHERE pool = $3 AND expires_at > clock_timestamp()), 0) AS level
  FROM mine m

-- One round: write claims, move heads, take the changes. All or nothing, only while the place is held.
--  $1 term, $2 changes above this id, $3 start lease in seconds
--  $4..$7  one row a claim: node, incarnation, first job, last job (positions in $8..$10, from 1)
--  $8..$10 the jobs: flow, seq, attempts
--  $11,$12 deferred jobs among them: flow, seq
--  $13,$14 flows that moved: flow, head
--  $15     which nodes of other processes to wake: '' for none
WITH place AS MATERIALIZED (
    -- The share lock makes a taking of the place wait for this statement, and this statement for a taking.
    SELECT term FROM tenantry.place
     WHERE term = $1 AND expires_at > clock_timestamp() AND EXISTS (SELECT FROM tenantry.served_term s WHERE s.term = $1)
       FOR SHARE
), claimed AS (
    INSERT INTO tenantry.claims (node_id, incarnation, expires_at, flow_ids, seqs, attempts, due)
    SELECT c.node, c.incarnation, clock_timestamp() + make_interval(secs => $3::float8),
           ($8::bigint[])[c.low:c.high], ($9::bigint[])[c.low:c.high], ($10::smallint[])[c.low:c.high],
           -- Read, not taken from the DELETE below: whoever locks rows of deferred has locked their flows first.
           CASE WHEN cardinality($11::bigint[]) > 0 THEN (
             SELECT jsonb_object_agg(g.flow_id || '/' || g.seq, extract(epoch FROM d.due_at))
               FROM unnest($11::bigint[], $12::bigint[]) g (flow_id, seq)
              CROSS JOIN LATERAL (SELECT due_at FROM tenantry.deferred
                                   WHERE flow_id = g.flow_id AND seq = g.seq OFFSET 0) d
              WHERE (g.flow_id, g.seq) IN (
                SELECT * FROM unnest(($8::bigint[])[c.low:c.high], ($9::bigint[])[c.low:c.high]))) END
      FROM place, unnest($4::text[], $5::integer[], $6::integer[], $7::integer[]) c (node, incarnation, low, high)
), undeferred AS (
    -- OFFSET 0 keeps each look-up a look-up: one probe of the key a row, whatever the statistics say. Rows of
    -- deferred, flows and withdrawn are not updated by others, so each stays where it was found.
    DELETE FROM tenantry.deferred WHERE ctid = ANY (ARRAY(
        SELECT d.place FROM place, unnest($11::bigint[], $12::bigint[]) g (flow_id, seq)
         CROSS JOIN LATERAL (SELECT ctid AS place FROM tenantry.deferred
                              WHERE flow_id = g.flow_id AND seq = g.seq OFFSET 0) d))
), moved AS (
    -- Never back: tenantry.withdraw_replay moves one as well, past places that a round may still believe in.
    UPDATE tenantry.flows f SET head = greatest(f.head, g.head)
      FROM (SELECT x.place, g.head FROM place, unnest($13::bigint[], $14::bigint[]) g (flow_id, head)
             CROSS JOIN LATERAL (SELECT ctid AS place FROM tenantry.flows WHERE flow_id = g.flow_id OFFSET 0) x) g
     WHERE f.ctid = g.place
), passed AS (
    DELETE FROM tenantry.withdrawn WHERE ctid = ANY (ARRAY(
        SELECT w.place FROM place, unnest($13::bigint[], $14::bigint[]) g (flow_id, head)
         CROSS JOIN LATERAL (SELECT ctid AS place FROM tenantry.withdrawn
                              WHERE flow_id = g.flow_id AND seq < g.head OFFSET 0) w))
), heard AS (
    DELETE FROM tenantry.changes c USING place WHERE c.change_id > $2 RETURNING c.*
), ended AS (
    INSERT INTO tenantry.endings AS e (tenant_id, ended)
    SELECT u.tenant_id, sum(u.n) FROM heard h, unnest(h.ended_tenants, h.ended_counts) u (tenant_id, n)
     WHERE h.ended_tenants IS NOT NULL GROUP BY 1
    ON CONFLICT (tenant_id) DO UPDATE SET ended = e.ended + EXCLUDED.ended
), woken AS (
    SELECT pg_notify('tenantry_claims', $15) FROM place WHERE $15 <> ''
)
SELECT clock_timestamp() AS moment, h.change_id, h.kind, h.flow_id, h.order_id, h.first_seq, h.count, h.cost, h.flow_ids, h.seqs,
       h.reported, h.due_at, h.attempts, h.first, h.summaries
  FROM place LEFT JOIN heard h ON true LEFT JOIN woken ON true
 ORDER BY h.change_id

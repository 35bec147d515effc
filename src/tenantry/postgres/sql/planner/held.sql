-- $1 term. Every job that a live claim holds.
SELECT u.flow_id, u.seq
  FROM tenantry.place p LEFT JOIN (tenantry.claims c CROSS JOIN LATERAL unnest(c.flow_ids, c.seqs) u (flow_id, seq)) ON true
 WHERE p.term = $1 AND p.expires_at > clock_timestamp() AND EXISTS (SELECT FROM tenantry.served_term s WHERE s.term = $1)

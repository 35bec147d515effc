SELECT u.flow_id, u.seq, c.claimed_at, c.node_id, c.incarnation
  FROM tenantry.claims c, unnest(c.flow_ids, c.seqs) u (flow_id, seq)

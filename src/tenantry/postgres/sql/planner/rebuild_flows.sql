-- Every flow with work: in line, out of line, or in flight. Jobs are not read, but for the one at each head.
SELECT f.flow_id, f.tenant_id, l.target, f.job_class, f.replay, f.bucket, f.head, f.paused, t.tail, s.state AS shaper, j.submitted_at
  FROM tenantry.flows f
  JOIN tenantry.tails t USING (flow_id)
  JOIN tenantry.lanes l USING (lane_id)
  LEFT JOIN tenantry.shapers s USING (lane_id)
  LEFT JOIN tenantry.jobs j ON j.flow_id = f.flow_id AND j.seq = f.head
 WHERE t.tail >= f.head
    OR EXISTS (SELECT FROM tenantry.deferred d WHERE d.flow_id = f.flow_id)
    OR f.flow_id IN (SELECT unnest(c.flow_ids) FROM tenantry.claims c)
 ORDER BY f.flow_id

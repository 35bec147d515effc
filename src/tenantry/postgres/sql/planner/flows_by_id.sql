-- $1 flow ids that the planner hears of for the first time.
SELECT f.flow_id, f.tenant_id, l.target, f.job_class, f.replay, f.bucket, f.head, f.paused, s.state AS shaper
  FROM unnest($1::bigint[]) g (flow_id)
 CROSS JOIN LATERAL (SELECT * FROM tenantry.flows WHERE flow_id = g.flow_id OFFSET 0) f
 CROSS JOIN LATERAL (SELECT target FROM tenantry.lanes WHERE lane_id = f.lane_id OFFSET 0) l
  LEFT JOIN LATERAL (SELECT state FROM tenantry.shapers WHERE lane_id = f.lane_id OFFSET 0) s ON true
 ORDER BY f.flow_id

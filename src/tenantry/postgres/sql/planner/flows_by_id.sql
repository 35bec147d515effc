-- $1 flow ids that the planner hears of for the first time.
SELECT f.flow_id, f.tenant_id, l.target, f.job_class, f.replay, f.bucket, f.head, l.paused
  FROM tenantry.flows f JOIN tenantry.lanes l USING (lane_id)
 WHERE f.flow_id = ANY ($1::bigint[])

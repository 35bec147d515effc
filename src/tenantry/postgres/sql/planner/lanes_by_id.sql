SELECT tenant_id, target, paused FROM tenantry.lanes WHERE lane_id = ANY ($1::bigint[])

SELECT flow_id, seq, due_at, attempts, first FROM tenantry.deferred ORDER BY due_at, flow_id, seq

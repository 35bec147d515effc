SELECT w.flow_id, w.seq FROM tenantry.withdrawn w JOIN tenantry.flows f USING (flow_id) WHERE w.seq >= f.head

-- Keep a plan of the bound tenant.
--  $1 replay, $2 tenant, $3 spec, $4 again, $5 hold unknown, $6 park after, $7 report, $8 bound of the source, $9 count, $10 exactly
INSERT INTO tenantry.replays (replay_id, tenant_id, spec, again, hold_unknown, park_after, plan, source_bound, source_count,
                              counted_exactly)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

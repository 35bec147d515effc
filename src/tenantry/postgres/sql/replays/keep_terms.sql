-- $1 replay, $2 tenant, $3 park_after, $4 hold_unknown.
INSERT INTO tenantry.replay_terms (replay_id, tenant_id, park_after, hold_unknown) VALUES ($1, $2, $3, $4)
ON CONFLICT (replay_id) DO UPDATE SET park_after = EXCLUDED.park_after, hold_unknown = EXCLUDED.hold_unknown
 WHERE (replay_terms.park_after, replay_terms.hold_unknown) <> (EXCLUDED.park_after, EXCLUDED.hold_unknown)

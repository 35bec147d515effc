-- $1 node, $2 incarnation, $3 claims, $4 lease in seconds. Those still held: one that has run out may be taken back at
-- any moment, so it is lost already.
WITH held AS MATERIALIZED (
    -- Locked in key order, as everyone who locks several claims does.
    SELECT claim_id FROM tenantry.claims
     WHERE claim_id = ANY ($3::bigint[]) AND node_id = $1 AND incarnation = $2
       AND started AND expires_at > clock_timestamp()
     ORDER BY claim_id FOR UPDATE
)
UPDATE tenantry.claims c SET expires_at = clock_timestamp() + make_interval(secs => $4::float8)
  FROM held h WHERE c.claim_id = h.claim_id
RETURNING c.claim_id

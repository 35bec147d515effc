-- $1 node, $2 incarnation, $3 claims, $4 lease in seconds. Those still held.
UPDATE tenantry.claims
   SET expires_at = clock_timestamp() + make_interval(secs => $4::float8)
 WHERE claim_id = ANY ($3::bigint[]) AND node_id = $1 AND incarnation = $2
RETURNING claim_id

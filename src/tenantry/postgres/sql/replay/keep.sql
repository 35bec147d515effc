-- $1 holder, $2 replays, $3 their tokens, $4 lease in seconds. Those still held: a lease that has run out is lost already.
WITH held AS MATERIALIZED (
    SELECT r.replay_id FROM tenantry.replays r
     WHERE r.replay_id = ANY ($2::text[]) AND r.holder = $1 AND r.lease_until > clock_timestamp()
       AND (r.replay_id, r.token) IN (SELECT * FROM unnest($2::text[], $3::bigint[]))
       AND r.state IN ('running', 'paused', 'held', 'draining', 'cancelling')
     ORDER BY r.replay_id FOR NO KEY UPDATE
)
UPDATE tenantry.replays r SET lease_until = clock_timestamp() + make_interval(secs => $4::float8)
  FROM held h WHERE r.replay_id = h.replay_id
RETURNING r.replay_id

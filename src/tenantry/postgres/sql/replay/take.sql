-- $1 holder, $2 lease in seconds, $3 most. Replays that need a coordinator and have none, the longest without one first.
UPDATE tenantry.replays r
   SET holder = $1, token = token + 1, lease_until = clock_timestamp() + make_interval(secs => $2::float8)
 WHERE r.replay_id = ANY (ARRAY(
    SELECT replay_id FROM tenantry.replays
     WHERE state IN ('running', 'paused', 'held', 'draining', 'cancelling') AND lease_until <= clock_timestamp()
     ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED))
RETURNING r.replay_id

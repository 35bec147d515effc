-- $1 holder, $2 replays, $3 their tokens.
WITH held AS MATERIALIZED (
    SELECT r.replay_id FROM tenantry.replays r
     WHERE r.replay_id = ANY ($2::text[]) AND r.holder = $1
       AND (r.replay_id, r.token) IN (SELECT * FROM unnest($2::text[], $3::bigint[]))
     ORDER BY r.replay_id FOR NO KEY UPDATE
)
UPDATE tenantry.replays r SET holder = '', lease_until = '-infinity' FROM held h WHERE r.replay_id = h.replay_id

-- $1 replay, $2 most. Classes of failures alike, the most first, with what of their origin was delivered.
SELECT c.origin, c.fingerprint, c.failures, coalesce(d.delivered, 0) AS delivered, c.example
  FROM tenantry.replay_classes c
  LEFT JOIN tenantry.replay_classes d ON d.replay_id = c.replay_id AND d.origin = c.origin AND d.fingerprint = ''
 WHERE c.replay_id = $1 AND c.fingerprint <> ''
 ORDER BY c.failures DESC, c.origin, c.fingerprint LIMIT $2

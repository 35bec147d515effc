-- $1 replays, $2 the error classes that speak about the message. One instant.
SELECT replay_id, waiting, in_flight, duplicate, delivered, parked, dropped, dead, returned, unknown, not_meant AS left,
       seen_failing, failures, message_faults
  FROM tenantry.replay_counts($1::text[], $2::text[])

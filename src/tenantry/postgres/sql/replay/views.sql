-- $1 replays, in this order; $2 the error classes that speak about the message. One instant.
SELECT r.replay_id, r.tenant_id, r.spec, r.plan, r.progress, r.state, r.source_bound, r.source_count, r.counted_exactly,
       r.hold_rule, r.hold_reason, r.frees_at, r.hold_stops, r.created_at, r.started_at, r.ended_at, r.position, r.exhausted, r.sampled,
       r.running_for, r.token, CASE WHEN r.lease_until > clock_timestamp() THEN r.holder ELSE '' END AS holder,
       c.waiting, c.in_flight, c.duplicate, c.delivered, c.parked, c.dropped, c.dead, c.returned, c.unknown,
       c.not_meant AS left, c.seen_failing, c.failures, c.message_faults
  FROM unnest($1::text[]) WITH ORDINALITY g (id, n)
 CROSS JOIN LATERAL (SELECT * FROM tenantry.replays x WHERE x.replay_id = g.id OFFSET 0) r
  JOIN tenantry.replay_counts($1, $2::text[]) c ON c.replay_id = g.id
 ORDER BY g.n

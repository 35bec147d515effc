-- Nodes that have been silent for a day, an hour less for those that left: whatever they held has long run out.
DELETE FROM tenantry.nodes WHERE seen_at < clock_timestamp() - interval '1 day'

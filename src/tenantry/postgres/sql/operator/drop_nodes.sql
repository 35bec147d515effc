-- Nodes that have been silent for a day, those that left too: whatever they held has long run out.
DELETE FROM tenantry.nodes WHERE seen_at < clock_timestamp() - interval '1 day'

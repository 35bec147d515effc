-- The changes whose rows this reading includes: when they are taken later they say nothing new.
SELECT change_id FROM tenantry.changes

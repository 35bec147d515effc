-- How long a job ran is known to its attempt; the planner charges what a slot was held for, and needs to know only
-- whether anybody could say how the job ended. changes.busy stays for workers of the version before, which write it.
ALTER TABLE tenantry.changes ADD COLUMN reported boolean NOT NULL DEFAULT true;

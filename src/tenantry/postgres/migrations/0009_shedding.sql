-- How much each pool sheds, and why, as the planner last said. What it said means nothing after expires_at, so that a
-- planner that is gone sheds nothing. Nodes that admit read it once a second; tenants may not.
CREATE TABLE tenantry.shedding (
    pool       text             PRIMARY KEY,
    level      smallint         NOT NULL CHECK (level BETWEEN 0 AND 3),
    age        double precision NOT NULL, -- seconds that tenants with more than half of the shares have waited within their quota
    used       double precision NOT NULL, -- part of the slots in use
    falls_in   double precision NOT NULL, -- seconds in which the level can have fallen to 0
    changed_at timestamptz      NOT NULL,
    expires_at timestamptz      NOT NULL
) WITH (fillfactor = 50);

GRANT SELECT, INSERT, UPDATE ON tenantry.shedding TO tenantry_engine;

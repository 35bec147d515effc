-- A server that applies policies of another role below subqueries; the twin runs on the server that is there.
-- @version 160004
-- @broken
SELECT 1;
-- @right
SELECT 1;

-- Everybody makes objects, as in the schema public before PostgreSQL 15.
-- @broken
GRANT CREATE ON SCHEMA shop TO PUBLIC;
-- @right
GRANT USAGE ON SCHEMA shop TO PUBLIC;

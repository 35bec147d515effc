-- The database does.
-- @broken
SET LOCAL ROLE NONE;
DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET app.tenant_id = ''1''', current_database()); END$$;
-- @right
SET LOCAL ROLE NONE;
DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET app.theme = ''dark''', current_database()); END$$;

-- The application owns the database, and so the schema public.
-- @broken
RESET ROLE;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO shop_app', current_database()); END $$;
-- @right
RESET ROLE;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO shop_owner', current_database()); END $$;

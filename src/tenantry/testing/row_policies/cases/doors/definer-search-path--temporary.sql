-- The path is set, and a temporary table of the caller's still comes first; the twin names pg_temp last, or the schema.
-- @broken
CREATE FUNCTION known() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop
    AS $$ SELECT count(*) FROM currencies $$;
-- @right
CREATE FUNCTION known() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp
    AS $$ SELECT count(*) FROM currencies $$;
CREATE FUNCTION listed() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = ''
    AS $$ SELECT count(*) FROM shop.currencies $$;

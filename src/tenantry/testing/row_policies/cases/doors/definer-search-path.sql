-- The caller's search path, the owner's rights; the twin sets its own.
-- @broken
CREATE FUNCTION one() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT 1::bigint $$;
-- @right
CREATE FUNCTION one() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT 1::bigint $$;
CREATE FUNCTION two() RETURNS bigint LANGUAGE sql SECURITY INVOKER AS $$ SELECT 2::bigint $$;

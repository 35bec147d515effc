-- Text becomes SQL as a superuser; the twin's owner is held, and a trigger's EXECUTE FUNCTION is none.
-- @broken
RESET ROLE;
CREATE FUNCTION counted(what text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN EXECUTE 'SELECT count(*) FROM ' || what; RETURN 1; END $$;
-- @right
RESET ROLE;
CREATE FUNCTION counted(what text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN EXECUTE 'SELECT count(*) FROM ' || what; RETURN 1; END $$;
ALTER FUNCTION counted(what text) OWNER TO shop_owner;
CREATE FUNCTION noted() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN RETURN 1; /* EXECUTE no more */ END $$;

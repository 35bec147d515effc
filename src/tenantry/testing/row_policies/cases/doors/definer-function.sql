-- A superuser's function counts every tenant's rows; the twin's owner is held, and its superuser's reads a shared list.
-- @broken
RESET ROLE;
CREATE FUNCTION turnover() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT sum(amount) FROM shop.invoices $$;
-- @right
RESET ROLE;
CREATE FUNCTION turnover() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT sum(amount) FROM shop.invoices $$;
ALTER FUNCTION turnover() OWNER TO shop_owner;
CREATE FUNCTION known() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT count(*) FROM shop.currencies $$;

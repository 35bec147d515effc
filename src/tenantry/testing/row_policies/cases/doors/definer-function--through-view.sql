-- It names a view, and the view opens the table; the twin may not be called.
-- @broken
RESET ROLE;
CREATE VIEW inside AS SELECT * FROM invoices;
GRANT SELECT ON inside TO shop_owner;
CREATE FUNCTION turnover() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT sum(amount) FROM inside $$;
ALTER FUNCTION turnover() OWNER TO shop_owner;
-- @right
RESET ROLE;
CREATE VIEW inside AS SELECT * FROM invoices;
GRANT SELECT ON inside TO shop_owner;
CREATE FUNCTION turnover() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT sum(amount) FROM inside $$;
ALTER FUNCTION turnover() OWNER TO shop_owner;
REVOKE EXECUTE ON FUNCTION turnover() FROM PUBLIC;

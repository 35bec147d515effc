-- The function that reads is nobody's to call; the one that calls it is. The twin's caller runs as the caller.
-- @common
RESET ROLE;
CREATE FUNCTION shop.all_customers() RETURNS SETOF shop.customers LANGUAGE sql STABLE
    AS 'SELECT * FROM shop.customers';
REVOKE EXECUTE ON FUNCTION shop.all_customers() FROM PUBLIC;
-- @broken
CREATE FUNCTION shop.listed() RETURNS SETOF shop.customers LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = shop, pg_temp AS 'SELECT * FROM shop.all_customers()';
-- @right
CREATE FUNCTION shop.listed() RETURNS SETOF shop.customers LANGUAGE sql STABLE SECURITY INVOKER
    SET search_path = shop, pg_temp AS 'SELECT * FROM shop.all_customers()';

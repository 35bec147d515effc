-- The body is one that the server has parsed: no text is needed to know what it reads.
-- @broken
RESET ROLE;
CREATE FUNCTION turnover() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = shop, pg_temp
    BEGIN ATOMIC SELECT sum(amount) FROM shop.invoices; END;
-- @right
RESET ROLE;
CREATE FUNCTION turnover() RETURNS bigint LANGUAGE sql SECURITY INVOKER
    BEGIN ATOMIC SELECT sum(amount) FROM shop.invoices; END;

-- Run on rows before their policies.
-- @broken
SET LOCAL ROLE NONE;
CREATE FUNCTION shop.is_big(amount int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE LEAKPROOF AS $$ BEGIN RAISE NOTICE '%', amount; RETURN amount > 9; END $$;
REVOKE ALL ON FUNCTION shop.is_big(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shop.is_big(int) TO shop_app;
-- @right
SET LOCAL ROLE NONE;
CREATE FUNCTION shop.is_big(amount int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE '%', amount; RETURN amount > 9; END $$;
REVOKE ALL ON FUNCTION shop.is_big(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shop.is_big(int) TO shop_app;

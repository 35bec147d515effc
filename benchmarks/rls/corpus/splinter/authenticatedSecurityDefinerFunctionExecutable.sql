-- A function that runs as its owner, for all who logged in.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
ALTER TABLE orders NO FORCE ROW LEVEL SECURITY;
CREATE FUNCTION all_orders() RETURNS SETOF orders LANGUAGE sql STABLE SECURITY DEFINER SET search_path = shop, pg_temp AS $$ SELECT * FROM shop.orders $$;
REVOKE ALL ON FUNCTION all_orders() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION all_orders() TO shop_app;
-- @right
CREATE FUNCTION all_orders() RETURNS SETOF orders LANGUAGE sql STABLE SET search_path = shop, pg_temp AS $$ SELECT * FROM shop.orders $$;
REVOKE ALL ON FUNCTION all_orders() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION all_orders() TO shop_app;

-- A function that runs as its owner and looks names up where the caller says.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
CREATE FUNCTION order_count() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT count(*) FROM orders WHERE tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int $$;
REVOKE ALL ON FUNCTION order_count() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION order_count() TO shop_app;
-- @right
CREATE FUNCTION order_count() RETURNS bigint LANGUAGE sql STABLE SET search_path = shop, pg_temp AS $$ SELECT count(*) FROM shop.orders $$;
REVOKE ALL ON FUNCTION order_count() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION order_count() TO shop_app;

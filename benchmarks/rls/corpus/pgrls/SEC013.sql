-- A trigger that runs as the owner copies rows to where no policy is.
-- @common
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO shop_app;
CREATE POLICY tenant ON orders TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
CREATE TABLE order_log (tenant_id int NOT NULL, id int NOT NULL, note text, PRIMARY KEY (tenant_id, id));
ALTER TABLE order_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE order_log FORCE ROW LEVEL SECURITY;
GRANT SELECT ON order_log TO shop_app;
CREATE POLICY tenant ON order_log TO shop_app USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int) WITH CHECK (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
CREATE FUNCTION copied() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN INSERT INTO shop.order_log SELECT o.* FROM shop.orders AS o; RETURN NEW; END $$;
REVOKE ALL ON FUNCTION copied() FROM PUBLIC;
ALTER TABLE orders NO FORCE ROW LEVEL SECURITY;
CREATE TRIGGER copy AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION copied();
-- @right
CREATE FUNCTION copied() RETURNS trigger LANGUAGE plpgsql SET search_path = shop, pg_temp AS $$ BEGIN NEW.note := trim(NEW.note); RETURN NEW; END $$;
REVOKE ALL ON FUNCTION copied() FROM PUBLIC;
CREATE TRIGGER copy BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION copied();

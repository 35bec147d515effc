-- The trigger writes another table as a superuser; the twin's as its held owner.
-- @common
CREATE TABLE log (tenant_id int NOT NULL, id int NOT NULL, what text, PRIMARY KEY (tenant_id, id));
ALTER TABLE log ENABLE ROW LEVEL SECURITY;
ALTER TABLE log FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON log USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
-- @broken
RESET ROLE;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN INSERT INTO shop.log VALUES (NEW.tenant_id, NEW.id, NEW.note); RETURN NEW; END $$;
CREATE TRIGGER noted BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION noted();
-- @right
RESET ROLE;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN INSERT INTO shop.log VALUES (NEW.tenant_id, NEW.id, NEW.note); RETURN NEW; END $$;
ALTER FUNCTION noted() OWNER TO shop_owner;
CREATE TRIGGER noted BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION noted();

-- Writes to a view become a superuser's UPDATE; the twin's is the caller's.
-- @common
CREATE VIEW entry WITH (security_invoker = true) AS SELECT tenant_id, id, note FROM invoices;
-- @broken
RESET ROLE;
CREATE FUNCTION entered() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp AS $$ BEGIN UPDATE shop.invoices SET note = NEW.note WHERE id = NEW.id; RETURN NEW; END $$;
CREATE TRIGGER entered INSTEAD OF INSERT ON entry FOR EACH ROW EXECUTE FUNCTION entered();
GRANT INSERT ON entry TO shop_app;
-- @right
RESET ROLE;
CREATE FUNCTION entered() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER AS $$ BEGIN UPDATE shop.invoices SET note = NEW.note WHERE id = NEW.id; RETURN NEW; END $$;
CREATE TRIGGER entered INSTEAD OF INSERT ON entry FOR EACH ROW EXECUTE FUNCTION entered();
GRANT INSERT ON entry TO shop_app;

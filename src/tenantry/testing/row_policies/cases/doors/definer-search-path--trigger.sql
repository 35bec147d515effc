-- Nobody calls a trigger's function, and whoever writes runs it; the twin's path is its own, and another is never fired.
-- @common
CREATE TABLE counts (total int NOT NULL);
-- @broken
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    AS $$ BEGIN UPDATE counts SET total = total + 1; RETURN NEW; END $$;
CREATE TRIGGER counted AFTER INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION counted();
-- @right
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, pg_temp
    AS $$ BEGIN UPDATE counts SET total = total + 1; RETURN NEW; END $$;
CREATE TRIGGER counted AFTER INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION counted();
CREATE FUNCTION idle() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    AS $$ BEGIN UPDATE counts SET total = 0; RETURN NEW; END $$;
CREATE TRIGGER idle AFTER INSERT ON counts FOR EACH ROW EXECUTE FUNCTION idle();

-- A rule of a superuser's table deletes invoices; the twin's table has the held owner.
-- @broken
RESET ROLE;
CREATE TABLE doomed (id int PRIMARY KEY);
CREATE RULE doomed AS ON INSERT TO doomed DO ALSO DELETE FROM shop.invoices WHERE id = NEW.id;
GRANT INSERT ON doomed TO shop_app;
-- @right
CREATE TABLE doomed (id int PRIMARY KEY);
CREATE RULE doomed AS ON INSERT TO doomed DO ALSO DELETE FROM shop.invoices WHERE id = NEW.id;
GRANT INSERT ON doomed TO shop_app;

-- A table in neither list, which the application uses; the twin's only the owner uses.
-- @declared {"tables": {"shop.customers": "tenant_id", "shop.invoices": "tenant_id"}, "shared": {"shop.currencies": "one list for all"}}
-- @broken
CREATE TABLE notes (id int PRIMARY KEY, body text);
GRANT SELECT ON notes TO shop_app;
-- @right
CREATE TABLE notes (id int PRIMARY KEY, body text);

-- A harmless view over a superuser's, which nobody was granted; the twin's inner view asks as the caller.
-- @broken
RESET ROLE;
CREATE VIEW inside AS SELECT * FROM invoices;
GRANT SELECT ON inside TO shop_owner;
CREATE VIEW outside AS SELECT * FROM inside;
ALTER VIEW outside OWNER TO shop_owner;
GRANT SELECT ON outside TO shop_app;
-- @right
RESET ROLE;
CREATE VIEW inside WITH (security_invoker = true) AS SELECT * FROM invoices;
GRANT SELECT ON inside TO shop_owner;
CREATE VIEW outside AS SELECT * FROM inside;
ALTER VIEW outside OWNER TO shop_owner;
GRANT SELECT ON outside TO shop_app;

-- An object that everybody may read; the twin's is its owner's.
-- @broken
RESET ROLE;
SELECT lo_create(420001);
GRANT SELECT ON LARGE OBJECT 420001 TO shop_app;
-- @right
RESET ROLE;
SELECT lo_create(420001);

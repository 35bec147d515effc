-- The application's sessions begin with it; the twin's are the dump's.
-- @broken
RESET ROLE;
ALTER ROLE shop_app SET row_security = off;
-- @right
RESET ROLE;
CREATE ROLE shop_dump NOLOGIN;
ALTER ROLE shop_dump SET row_security = off;

-- The privilege comes by a group; the twin's group is granted nothing, and lies in a schema that the application cannot enter.
-- @broken
RESET ROLE;
CREATE ROLE shop_readers NOLOGIN;
GRANT shop_readers TO shop_app;
CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
GRANT SELECT ON orders TO shop_readers;
-- @right
RESET ROLE;
CREATE ROLE shop_readers NOLOGIN;
GRANT shop_readers TO shop_app;
CREATE SCHEMA vault;
CREATE TABLE vault.orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));
GRANT SELECT ON vault.orders TO shop_readers;

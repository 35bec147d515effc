-- Every tenant's rows leave; the twin sends a shared list.
-- @broken
RESET ROLE;
CREATE PUBLICATION everything FOR TABLE shop.invoices;
-- @right
RESET ROLE;
CREATE PUBLICATION lists FOR TABLE shop.currencies;

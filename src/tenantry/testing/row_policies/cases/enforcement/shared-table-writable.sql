-- Every tenant may change the shared list; in the twin row security lets it be read and not written.
-- @declared {"tables": {"shop.customers": "tenant_id", "shop.invoices": "tenant_id"}, "shared": {"shop.currencies": "one list for all"}}
-- @broken
GRANT UPDATE ON currencies TO shop_app;
-- @right
GRANT UPDATE ON currencies TO shop_app;
ALTER TABLE currencies ENABLE ROW LEVEL SECURITY;
ALTER TABLE currencies FORCE ROW LEVEL SECURITY;
CREATE POLICY everyone ON currencies FOR SELECT USING (true);

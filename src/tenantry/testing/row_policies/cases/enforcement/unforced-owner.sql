-- Row security without FORCE.
-- @broken
ALTER TABLE invoices NO FORCE ROW LEVEL SECURITY;
-- @right
ALTER TABLE invoices FORCE ROW LEVEL SECURITY;

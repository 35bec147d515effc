-- The role starts every session as tenant 1.
-- @broken
SET LOCAL ROLE NONE;
ALTER ROLE shop_app SET app.tenant_id = '1';
-- @right
SET LOCAL ROLE NONE;
ALTER ROLE shop_app SET app.tenant_id = '';
ALTER ROLE shop_app SET statement_timeout = '30s';

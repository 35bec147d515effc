SELECT version FROM tenantry.registry

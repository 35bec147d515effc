SELECT (SELECT version FROM tenantry.registry) AS version, (SELECT floor FROM tenantry.registry) AS floor,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(name, settings) ORDER BY position, name), '[]') FROM tenantry.tiers) AS tiers,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(tenant_id, tier, document) ORDER BY tenant_id), '[]')
          FROM tenantry.tenants) AS tenants

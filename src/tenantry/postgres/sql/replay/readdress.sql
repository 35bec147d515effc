-- A parked message goes elsewhere, or is of another type: $1 tenant, $2 its job, $3 target and $4 content type or NULL.
UPDATE tenantry.parked SET target = coalesce($3::text, target), content_type = coalesce($4::text, content_type)
 WHERE tenant_id = $1 AND job_id = $2

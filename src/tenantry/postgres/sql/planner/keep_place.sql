-- $1 term, $2 lease in seconds. Nothing when the place is lost.
UPDATE tenantry.place
   SET expires_at = clock_timestamp() + make_interval(secs => $2::float8)
 WHERE term = $1 AND expires_at > clock_timestamp() AND EXISTS (SELECT FROM tenantry.served_term s WHERE s.term = $1)
RETURNING term

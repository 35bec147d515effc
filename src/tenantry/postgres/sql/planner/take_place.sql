-- $1 holder, $2 lease in seconds. The new term, or nothing while another holds the place.
UPDATE tenantry.place
   SET term = term + 1, holder = $1, expires_at = clock_timestamp() + make_interval(secs => $2::float8)
 WHERE expires_at <= clock_timestamp()
RETURNING term

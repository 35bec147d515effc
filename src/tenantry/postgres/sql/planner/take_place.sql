-- $1 holder, $2 lease in seconds. The new term, or nothing while another holds the place. It waits for the disk: a term
-- that a crash undid would be given twice.
WITH durably AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'on', true)
), taken AS (
    UPDATE tenantry.place
       SET term = term + 1, holder = $1, expires_at = clock_timestamp() + make_interval(secs => $2::float8)
      FROM durably
     WHERE expires_at <= clock_timestamp()
    RETURNING term
), over AS (
    DELETE FROM tenantry.served_term WHERE EXISTS (SELECT FROM taken)
)
INSERT INTO tenantry.served_term SELECT term FROM taken RETURNING term

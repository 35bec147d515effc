-- $1 at most so many, $2 of those numbered below this. The newest first.
SELECT * FROM tenantry.order_log WHERE order_id < $2 ORDER BY order_id DESC LIMIT $1

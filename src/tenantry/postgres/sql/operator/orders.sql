-- $1 at most so many. The orders that stand, the newest first.
SELECT g.* FROM tenantry.orders o JOIN tenantry.order_log g USING (order_id) ORDER BY o.order_id DESC LIMIT $1

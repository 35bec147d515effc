"""How fast queries are under row policies, and why not: read off the planner's own plan.

Theory. A policy is a condition that must hold before anything that might reveal a row is run on it. So the
planner searches an index by a condition of the query only where each function in it is leakproof, however
useful the index; the others are held back and run on every row of the tenant. The operators of integers,
text, dates and UUIDs are leakproof; those of enums, numeric, arrays, ranges and jsonb, LIKE, and most
functions are not.

What is read is ``EXPLAIN (FORMAT JSON, VERBOSE)`` as the application role with a tenant bound. Which
condition could have searched which index is in the facts; which function is leakproof, in the catalogue.
Pure.

Source: PostgreSQL's documentation, "Rules and Privileges" (leakproof), and
``restriction_is_securely_promotable`` of its planner.
"""

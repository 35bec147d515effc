"""The fair, durable work queue.

Theory. One *planner* per database decides every start, by the pure rule in
:mod:`tenantry.algorithms.fair_share`, from memory; the store is a durable log that can rebuild that memory
at any time. *Workers* on any number of nodes take what was claimed for them, run it, and settle.

Authority. The store's clock decides leases and due times, never a node's. What is in flight is what live
claims hold. The planner holds its place by a row with a term; every write of a planner names its term.

Invariants. An accepted job ends delivered, dead or cancelled and in no other way (K1). A settle names claim,
token and job; an old token changes nothing (K2). See ``docs/invariants.md``.

Failures. Any error discards the planner's memory, which is rebuilt; workers renew, and anyone reclaims,
without a planner. A worker that loses its lease stops the work it holds.
"""

"""Weighted fair share with a floor and a cap, over tenants, then lanes, then flows.

Theory
------
*Start-time fair queueing* (P. Goyal, H. Vin, H. Cheng, "Start-Time Fair Queueing", SIGCOMM 1996), carrying
what deficit round robin promises (M. Shreedhar, G. Varghese, "Efficient Fair Queuing using Deficit Round
Robin", SIGCOMM 1995) and what the seed documents ask for. Each tenant has a *virtual time* ``v``: the
slot-seconds it was charged, divided by its *effective weight* ``e``. The tenant with the smallest ``v`` is
served next. The virtual time ``V`` is the start tag of the last pick.

In the words of deficit round robin, ``(V - v) * e`` is the tenant's *deficit counter* in slot-seconds:
positive is credit, negative debt; a visit may run one *quantum* ahead; the *active list* is the heap of
eligible tenants, so idle tenants cost nothing. Keeping ``v`` instead of the counter makes long debts free:
deficit round robin must visit a tenant once a round until its debt is paid, here it just sorts later.

Rules
-----
F1  The share of an eligible tenant is ``max(φ/n, λ·w)``, λ such that the n shares add up to 1. Dividing by
    λ gives ``e = max(w, φ/(n·λ))``: the floor is a least effective weight, recomputed when n changes.
    Credit and debt are kept in slot-seconds, so that a change of ``e`` changes neither.
F2  Within a tenant the lane with the least charged slot-seconds is next, within a lane the flow.
F3  Replays leave a few slots, the headroom, to live and background work, which starts there out of turn.
F4  A tenant at ``max(1, ceil(cap · slots))`` in flight is not eligible.
F5  On becoming eligible ``v = max(v, V - quantum/e)``: at most one quantum of credit.
F6  A start is charged its estimate; from the estimate's end on the tenant is charged as the job overruns; the
    settle corrects to what was used. Credit is clamped to one quantum, debt never. A correction that would
    exceed the clamp moves V back instead: cut off, it would cost whoever is estimated too high its share
    (measured: jobs of 1 s declared as 20 s kept 14 % of ten slots instead of 50 %).
F7  What is blocked (paused, held, at a limit, at the cap, no slot of its kind) is in no heap.
F8  Rank 0 before 1 before 2, but an eligible lower rank gets at least one in ten of its tenant's picks.

Several kinds of work: a start is charged in every kind of the tenant's that the slot could have run, and
moves V of each of those. Where all slots run all kinds that is one clock; kinds with slots of their own keep
clocks of their own, and of two that share some slots the one that is served less goes first on those.

A round starts all its jobs at one moment. So who is next in turn gets at once what it would get of the
round's slots if they were given out one by one (its *portion*), and a round costs about one pick a tenant
that it serves, not one a job.

Costs: one pick is O(k·w + log n) for k kinds of work, w distinct weights and n eligible tenants; a tenant,
lane or flow that is idle or blocked costs nothing.

Where to read: ``turns`` (the one heap), ``records`` (the tree), ``shares``, ``headroom`` and ``rate``
(arithmetic), ``eligibility`` (who takes turns), ``charging`` (what work costs), ``classes`` and ``rule``
(who is next), ``scheduler`` (the face).
"""

from tenantry.algorithms.fair_share.records import Charge, Kind, Kinds, Pick
from tenantry.algorithms.fair_share.scheduler import FairShare
from tenantry.algorithms.fair_share.shares import cap_slots, least_effective_weight

__all__ = ["Charge", "FairShare", "Kind", "Kinds", "Pick", "cap_slots", "least_effective_weight"]

"""Virtual time over the real pure rules: hours in seconds, the same answer for the same seed.

Authority: the rule under test decides; this package only moves time and counts. Invariants: a slot holds one
job; what arrived is waiting, refused, running or finished. It does no I/O and starts nothing.
"""

from tenantry.simulation.engine import Simulation, simulate
from tenantry.simulation.model import ANY, Arrival, FlowKey, Kinds, SimSettings, SimTenant
from tenantry.simulation.report import Report, TenantReport, entitlements, jain
from tenantry.simulation.schedulers import Scheduler, equal, fifo, ours, weighted

__all__ = [
    "ANY",
    "Arrival",
    "FlowKey",
    "Kinds",
    "Report",
    "Scheduler",
    "SimSettings",
    "SimTenant",
    "Simulation",
    "TenantReport",
    "entitlements",
    "equal",
    "fifo",
    "jain",
    "ours",
    "simulate",
    "weighted",
]

"""A mass incident: a shared dependency failed, dead-lettered everywhere, and everybody replays at once.

``model``: who replays what, and where to; ``run``: every call of it in virtual time, by the product's own
rule and shapers; ``judged``: beside the fluid schedule (:mod:`tenantry.simulation.fluid`) of the same targets
and slots; ``shown``: tables, plain values, a picture.
"""

from tenantry.simulation.incident.judged import Judged, TierFigures
from tenantry.simulation.incident.model import (
    TIERS,
    Backlog,
    Incident,
    IncidentTenant,
    Scale,
    mass_incident,
)
from tenantry.simulation.incident.run import IncidentReport, IncidentRun, ReplayResult
from tenantry.simulation.incident.shown import HEADINGS, lines, picture, plain, rows

__all__ = [
    "HEADINGS",
    "TIERS",
    "Backlog",
    "Incident",
    "IncidentReport",
    "IncidentRun",
    "IncidentTenant",
    "Judged",
    "ReplayResult",
    "Scale",
    "TierFigures",
    "lines",
    "mass_incident",
    "picture",
    "plain",
    "rows",
]

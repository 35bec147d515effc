"""``tenantry replay``: every command of the group, which its modules add to it."""

from tenantry.cli import replay_looks, replay_orders, replay_parked, replay_plan
from tenantry.cli.replay_app import app

__all__ = ["app", "replay_looks", "replay_orders", "replay_parked", "replay_plan"]

"""Which lanes are shaped, and by what settings: read from the tenant's document. Pure."""

from tenantry.config.model import TargetSettings
from tenantry.lanes.model import HANDLER_PREFIX, Target, kind_of
from tenantry.lanes.shaper import ShaperSettings


def is_adaptive(target: Target, settings: TargetSettings) -> bool:
    """Whether the lane to ``target`` has a shaper. Left open, a delivery over HTTP or to a broker has one,
    and a handler has none: it runs on the slots themselves, which are what it can take. O(1)."""
    if settings.adaptive is not None:
        return settings.adaptive
    return not kind_of(Target(settings.url or target)).startswith(HANDLER_PREFIX)


def shaper_settings(settings: TargetSettings) -> ShaperSettings:
    """The shaper's settings for a target: its timeout and, as the ceiling, its limit. O(1)."""
    return ShaperSettings(timeout_for=settings.timeout_for, ceiling=settings.limit)

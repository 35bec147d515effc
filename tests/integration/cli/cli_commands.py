"""What the tests of the operator's commands share: how one is run, a registry, and how JSON is read."""

import json
from collections.abc import Callable
from typing import Any

Command = Callable[..., str]

REGISTRY = """
[tiers.gold]
weight = 3
pool = "gold"

[tenants]
acme = "gold"

[tenants.globex]
tier = "free"
targets.orders = { url = "https://example.com/orders", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
"""


def said(text: str) -> Any:
    return json.loads(text)

"""The operator's API on loopback, over the same store as the tenants': for the tests of lanes and orders."""

from dataclasses import dataclass
from typing import Any

from web_world import Reply, World

from tenantry.memory.api_keys import MemoryOperatorKeys
from tenantry.web.api import create_api
from tenantry.web.health import ReadinessCheck
from tenantry.web.operator import create_operator_app
from tenantry.web.server import HttpServer
from tenantry.web.services import OperatorServices, OrderServices


@dataclass
class Operators(World):
    """Requests go to the operator's application, with Ada's key."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.operator_keys = MemoryOperatorKeys()
        self.ada = self.operator_keys.issue("ada", self.randomness)
        services = OperatorServices(
            lambda: (b"", "text/plain"),
            ReadinessCheck(self.services),
            self.events.append,
            self.clock,
            self.randomness,
            OrderServices(self.store, self.directory, self.operator_keys),
            self.limits,
        )
        self.server = HttpServer(create_operator_app(services))

    def credential(self, tenant: str = "ada") -> list[tuple[str, str]]:
        """``tenant``: whose key is shown; Ada's unless told."""
        text = self.ada.text if tenant == "ada" else self.key(tenant)
        return [("authorization", f"Bearer {text}")]

    async def order(self, action: str, **fields: Any) -> Reply:
        order = {"action": action, "reason": "maintenance", **fields}
        return await self.post("/v1/orders", order, tenant="ada")

    async def look(self, path: str) -> Any:
        """What is answered with 200."""
        reply = await self.get(path, tenant="ada")
        assert reply.status == 200, reply.body
        return reply.json

    async def explanation(self, tenant: str, job: str) -> Any:
        """What the tenant is told of a job, by its own API."""
        headers = [("authorization", f"Bearer {self.key(tenant)}")]
        return (await self.tenants_reply(headers, f"/v1/jobs/{job}/explanation")).json

    async def tenants_reply(self, headers: list[tuple[str, str]], path: str = "/v1/jobs") -> Reply:
        """A request to the tenants' application."""
        async with HttpServer(create_api(self.services)) as tenants:
            self.server, operators = tenants, self.server
            reply = await self.ask("GET", path, headers)
            self.server = operators
        return reply

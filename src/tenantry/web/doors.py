"""What stands before whatever needs a credential, whoever's: it comes in one header, and in no URL."""

from typing import Final

from starlette.types import Scope

from tenantry.kernel.events import EventSink
from tenantry.telemetry.http_events import CredentialRefused
from tenantry.web.calls import Answer
from tenantry.web.credentials import Missing, Unusable, credential_of, query_holds_credential
from tenantry.web.exchange import Exchange, Step
from tenantry.web.problems import Refused, refused, refused_with

_CHALLENGE: Final = {"www-authenticate": 'Bearer realm="tenantry"'}
_WAYS: Final = "as Authorization: Bearer KEY or as X-API-Key: KEY"


def without_query_credential(step: Step, events: EventSink) -> Step:
    """``step``, unless the URL carries a credential."""

    async def checked(exchange: Exchange) -> Answer:
        if query_holds_credential(exchange.scope["query_string"]):
            events(CredentialRefused("in_query"))
            detail = f"URLs end in logs: send the key {_WAYS}, and replace the one in the URL."
            raise refused("credential-in-query", detail)
        return await step(exchange)

    return checked


def shown(scope: Scope, events: EventSink) -> str:
    """The text of the one credential. Raises :class:`Refused` where there is none, or more than one."""
    credential = credential_of(scope["headers"])
    if isinstance(credential, Missing):
        raise unauthenticated("missing", f"Send an API key {_WAYS}.", events)
    if not isinstance(credential, Unusable):
        return credential.text
    if credential.reason == "malformed":
        raise unauthenticated("malformed", credential.detail, events)
    events(CredentialRefused(credential.reason))
    raise refused("credential-ambiguous", credential.detail)


def unauthenticated(reason: str, detail: str, events: EventSink) -> Refused:
    """The refusal, told by its ``reason``, which the caller does not hear."""
    events(CredentialRefused(reason))
    return refused_with("unauthenticated", detail, _CHALLENGE)

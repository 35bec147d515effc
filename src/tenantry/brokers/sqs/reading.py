"""Between a message of SQS and one of a replay. Pure.

A message of SQS is text with up to ten attributes. Headers that do not fit (an eleventh, a name or a value
that no attribute can have) travel together as JSON in the attribute ``tenantry-headers``, and are unpacked
again.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.address import BrokerAddress, parse
from tenantry.lanes.model import Target
from tenantry.replay import fields
from tenantry.replay.fields import Unreadable
from tenantry.replay.model import Fetched, Message

PACKED: Final = "tenantry-headers"
GROUP: Final = "sqs-message-group-id"
_BINARY: Final = "sqs-binary-"
"""And a name: the header with the base64 of an attribute that is no text."""

MOST_ATTRIBUTES: Final = 10
_NAME = re.compile(r"(?!(?:aws|amazon)\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)", re.IGNORECASE)
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What SQS does not take in texts: all that XML 1.0 does not (SendMessage, "MessageBody")."""


def entry(stored: Mapping[str, Any], connection: str) -> Fetched:
    """The entry that a received message is; its receipt is SQS's."""
    payload = str(stored.get("Body", "")).encode()
    try:
        return Fetched(_message(stored, connection, payload), stored["ReceiptHandle"])
    except Unreadable as why:
        return fields.broken(stored["MessageId"], payload, str(why), receipt=stored["ReceiptHandle"])


def fits(text: str) -> bool:
    """Whether SQS takes these characters."""
    return bool(text) and _UNFIT.search(text) is None


def attributes_of(headers: Mapping[str, str], content_type: str) -> dict[str, Any]:
    """The attributes for a message with these headers."""
    wanted = {"content-type": content_type} | {k: v for k, v in headers.items() if k not in {PACKED, GROUP}}
    plain = {name: value for name, value in wanted.items() if _NAME.fullmatch(name) and fits(value)}
    if len(plain) < len(wanted) or len(plain) > MOST_ATTRIBUTES:
        kept = dict(list(plain.items())[: MOST_ATTRIBUTES - 1])
        packed = {name: value for name, value in wanted.items() if name not in kept}
        return _attributes(kept) | {PACKED: _string(json.dumps(packed))}
    return _attributes(plain)


def _message(stored: Mapping[str, Any], connection: str, payload: bytes) -> Message:
    about = stored.get("Attributes", {})
    headers = _headers(stored.get("MessageAttributes", {}))
    if group := about.get("MessageGroupId"):
        headers[GROUP] = group
    return Message(
        id=stored["MessageId"],
        payload=fields.checked_size(payload),
        content_type=fields.word(headers.pop("content-type", None), "content-type") or "application/json",
        target=_target(about.get("DeadLetterQueueSourceArn", ""), connection),
        headers=headers,
    )


def _headers(attributes: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in attributes.items():
        if name == PACKED:
            found |= _unpacked(value.get("StringValue", ""))
        elif str(value.get("DataType", "")).startswith("Binary"):
            found[_BINARY + name.lower()] = b64encode(value["BinaryValue"]).decode()
        else:
            found[name.lower()] = str(value.get("StringValue", ""))
    return found


def _unpacked(text: str) -> dict[str, str]:
    try:
        packed = json.loads(text)
    except ValueError:
        packed = None
    if isinstance(packed, dict) and all(isinstance(value, str) for value in packed.values()):
        return {name.lower(): value for name, value in packed.items()}
    raise Unreadable(f"the attribute {PACKED} is no JSON object of texts")


def _attributes(headers: Mapping[str, str]) -> dict[str, Any]:
    return {
        name.removeprefix(_BINARY): _binary(value) if name.startswith(_BINARY) else _string(value)
        for name, value in headers.items()
    }


def _string(value: str) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


def _binary(value: str) -> dict[str, Any]:
    try:
        return {"DataType": "Binary", "BinaryValue": b64decode(value, validate=True)}
    except ValueError:
        return _string(value)


def _target(arn: str, connection: str) -> Target | None:
    queue = arn.rpartition(":")[2]
    try:
        return Target(str(parse(str(BrokerAddress("sqs", connection, queue))))) if queue else None
    except InvalidValue:
        return None

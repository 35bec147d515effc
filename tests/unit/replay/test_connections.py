"""A tenant reaches what the operator has listed for it, and learns nothing of the rest."""

import pytest

from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.replay.connections import NO_CONNECTIONS, parse_connections

ACME, OTHER = TenantId("acme"), TenantId("other")
DOCUMENT = """
[connections.mq]
kind = "rabbitmq"
url = "amqp://user:s3cret@mq.example/"
options = { heartbeat = 30, tls = true }

[connections.mq.tenants.acme]
sources = ["acme.dead", "acme-*"]
targets = ["orders/acme.*"]

[connections.files]
kind = "jsonl"
url = "/srv/dead"
[connections.files.tenants."*"]
sources = ["shared/*"]
"""


def asked(tenant: TenantId, kind: str, connection: str, place: str) -> str:
    found = parse_connections(DOCUMENT).for_source(tenant, kind=kind, connection=connection, place=place)
    return found.name


@pytest.mark.parametrize(
    ("tenant", "kind", "connection", "place"),
    [
        (ACME, "rabbitmq", "mq", "acme.dead"),
        (ACME, "rabbitmq", "mq", "acme-1"),
        (ACME, "jsonl", "files", "shared/a"),
        (OTHER, "jsonl", "files", "shared/a"),
    ],
)
def test_what_is_listed_for_a_tenant_it_may_read(
    tenant: TenantId, kind: str, connection: str, place: str
) -> None:
    assert asked(tenant, kind, connection, place) == connection


@pytest.mark.parametrize(
    ("tenant", "kind", "connection", "place"),
    [
        (OTHER, "rabbitmq", "mq", "acme.dead"),
        (ACME, "rabbitmq", "mq", "acme.dead2"),
        (ACME, "rabbitmq", "mq", "ACME.dead"),
        (ACME, "kafka", "mq", "acme.dead"),
        (ACME, "rabbitmq", "absent", "acme.dead"),
        (ACME, "jsonl", "files", "private/a"),
    ],
)
def test_what_is_not_listed_is_refused_in_the_words_for_what_does_not_exist(
    tenant: TenantId, kind: str, connection: str, place: str
) -> None:
    with pytest.raises(InvalidValue) as raised:
        asked(tenant, kind, connection, place)
    text = str(raised.value).replace(repr(connection), "C").replace(repr(place), "P")
    assert text.startswith(
        f"source: C with P is not accepted; expected a place of a {kind} connection that is open to {tenant}"
    )
    assert "s3cret" not in str(raised.value)


def test_writing_is_allowed_apart_from_reading() -> None:
    found = parse_connections(DOCUMENT)
    assert found.for_target(ACME, connection="mq", place="orders/acme.new") is not None
    assert found.for_target(ACME, connection="mq", place="acme.dead") is None
    assert found.for_target(OTHER, connection="mq", place="orders/acme.new") is None
    assert NO_CONNECTIONS.for_target(ACME, connection="mq", place="orders/acme.new") is None


def test_options_are_flat_texts_and_secrets_are_not_shown() -> None:
    (mq, _) = parse_connections(DOCUMENT)
    assert mq.options == {"heartbeat": "30", "tls": "true"}
    assert "s3cret" not in repr(mq)


def test_all_faults_are_told_at_once_without_secrets() -> None:
    document = """
    [connections.a]
    kind = "rabitmq"
    url = ["amqp://u:s3cret@h"]
    [connections.b]
    kind = "kafka"
    url = "k:9092"
    options = { password = ["s3cret"] }
    tenant = 1
    [connections.b.tenants."no tenant"]
    source = ["x"]
    [connections.b.tenants.acme]
    sources = ["a*b"]
    targets = "x"
    """
    with pytest.raises(RegistryErrors) as raised:
        parse_connections(document)
    text = str(raised.value)
    assert "s3cret" not in text
    for part in (
        "connections.a.kind: 'rabitmq' is not accepted",
        "Did you mean 'rabbitmq'?",
        "connections.a.url",
        "connections.b: unknown key 'tenant'",
        "connections.b.options.password",
        'connections.b.tenants["no tenant"]',
        "unknown key 'source'",
        "connections.b.tenants.acme.sources: 'a*b'",
        "connections.b.tenants.acme.targets: 'x'",
    ):
        assert part in text, part

"""A place in a broker has one text, and what could be read in two ways is refused."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.address import BrokerAddress, amqp_address, parse, scheme_of
from tenantry.lanes.model import HTTP, Target, kind_of


@pytest.mark.parametrize(
    ("text", "connection", "place"),
    [
        ("amqp:mq/orders/order.created", "mq", "orders/order.created"),
        ("amqp:mq//acme.dead", "mq", "/acme.dead"),
        ("amqp:mq/orders/", "mq", "orders/"),
        ("amqp:mq/a%2Fb%25/x/y%", "mq", "a%2Fb%25/x/y%"),
        ("kafka:events/acme.orders-1", "events", "acme.orders-1"),
        ("sqs:eu-1/orders.fifo", "eu-1", "orders.fifo"),
        ("nats:core/orders.acme.créé", "core", "orders.acme.créé"),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, connection: str, place: str) -> None:
    found = parse(text)
    assert (found.connection, found.place, str(found)) == (connection, place, text)
    assert kind_of(Target(text)) == text.partition("/")[0]


@pytest.mark.parametrize(
    "text",
    [
        "amqp:mq", "amqp:mq/", "amqp:mq//", "amqp:mq/orders", "amqp:/x/y", "amqp:m q/x/y", "amqp:mq/a%2f/x",
        "amqp:mq/100%/x", "amqp:mq/x/\n", "amqp:mq/x/" + "k" * 250,
        "kafka:k/", "kafka:k/a/b", "kafka:k/..", "kafka:k/ä", "kafka:k/" + "t" * 250,
        "sqs:q/a.b", "sqs:q/.fifo", "sqs:q/https://sqs", "sqs:q/" + "q" * 81,
        "nats:n/a.*", "nats:n/a.>", "nats:n/a..b", "nats:n/.a", "nats:n/a b",
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused_with_how_one_is_written(text: str) -> None:
    with pytest.raises(InvalidValue, match=text.partition(":")[0] + ":CONNECTION/"):
        parse(text)


@pytest.mark.parametrize("exchange", ["", "orders", "a/b", "100%", "%2F", "%25/"])
def test_an_exchange_of_any_name_comes_back_as_it_was(exchange: str) -> None:
    assert parse(str(amqp_address("mq", exchange, "a/b%2F"))).exchange == exchange
    assert parse(str(amqp_address("mq", exchange, "a/b%2F"))).routing_key == "a/b%2F"


@pytest.mark.parametrize("text", ["orders", "https://a.example/amqp:x", "handler:amqp", "mqtt:a/b", "amqp"])
def test_other_targets_are_none(text: str) -> None:
    assert scheme_of(text) is None
    assert kind_of(Target(text)) == (text if text.startswith("handler:") else HTTP)


def test_no_two_addresses_are_one() -> None:
    assert parse("amqp:mq/a/b") == BrokerAddress("amqp", "mq", "a/b")
    assert parse("amqp:mq//a/b") != parse("amqp:mq/a/b")

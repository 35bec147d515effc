"""The whole registry, in TOML and JSON: what it may say, and how each fault is told."""

# ruff: noqa: E501 - messages stand as people see them, in one line

import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import (
    DEFAULT_FLOOR,
    FORMATS,
    Format,
    Registry,
    parse_registry,
    registry_from_json,
    registry_to_json,
)
from tenantry.config.tiers import DEFAULT_TIERS, Tier
from tenantry.config.url import check_url
from tenantry.config.validation import MOST_ERRORS, RegistryErrors
from tenantry.delivery.signature import new_secret, signing_keys
from tenantry.kernel.errors import InvalidValue, UnknownKey, UsageError
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId, TierName, Weight

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EXAMPLE = f"""
floor = 0.3

[tiers.gold]
weight = 6
cap = 0.5
pool = "gold"
submit_rate = 50

[tiers.free]
bound = "none"

[tenants]
tiny = "free"

[tenants.acme]
tier = "gold"

[tenants.acme.defaults]
timeout_for = 5
secret = "{SECRET}"

[tenants.acme.targets."https://hooks.acme.example/in"]
limit = 4

[tenants.acme.targets.billing]
url = "https://billing.acme.example/v1"
secret = "none"
"""


def tier(registry: Registry, name: str) -> Tier:
    return next(tier for tier in registry.tiers if tier.name == name)


def tenant(registry: Registry, name: str) -> TenantDocument:
    return next(document for document in registry.tenants if document.tenant == name)


def faults(text: Any, format: Format = "toml", **settings: Any) -> RegistryErrors:
    with pytest.raises(RegistryErrors) as caught:
        parse_registry(text, format=format, **settings)
    return caught.value


def test_a_registry_that_names_no_tier_has_the_default_tiers() -> None:
    registry = parse_registry('[tenants]\nacme = "critical"', format="toml")
    assert registry.tiers == DEFAULT_TIERS
    assert registry.floor == DEFAULT_FLOOR == 0.25
    assert registry.tenants == (TenantDocument(TenantId("acme"), TierName("critical")),)


def test_the_default_tiers_are_those_of_the_issue() -> None:
    figures = [(tier.name, tier.weight, tier.bound, tier.cap) for tier in DEFAULT_TIERS]
    assert figures == [
        ("free", 1, 100, 0.10),
        ("standard", 2, 200, 0.20),
        ("enterprise", 4, 2_000, 0.40),
        ("critical", 8, 5_000, 0.60),
    ]


def test_a_known_tier_keeps_the_figures_that_the_registry_does_not_name() -> None:
    free = tier(parse_registry(EXAMPLE, format="toml"), "free")
    assert free == replace(DEFAULT_TIERS[0], bound=None)


def test_a_new_tier_comes_after_the_known_ones() -> None:
    registry = parse_registry(EXAMPLE, format="toml")
    assert [tier.name for tier in registry.tiers] == ["free", "standard", "enterprise", "critical", "gold"]
    assert tier(registry, "gold") == Tier(
        TierName("gold"), Weight(6.0), cap=0.5, submit_rate=50.0, pool="gold"
    )


def test_a_target_keeps_what_its_tenants_defaults_say() -> None:
    acme = tenant(parse_registry(EXAMPLE, format="toml"), "acme")
    assert acme.defaults == TargetSettings(timeout_for=5.0, secret=SECRET)
    assert acme.settings_for("https://hooks.acme.example/in") == TargetSettings(
        timeout_for=5.0, limit=4, secret=SECRET
    )
    assert acme.settings_for("billing") == TargetSettings(
        url="https://billing.acme.example/v1", timeout_for=5.0
    )
    assert acme.settings_for("anything else") is acme.defaults


def test_tenants_come_in_the_order_of_their_ids() -> None:
    registry = parse_registry('[tenants]\nzoe = "free"\nAda = "free"\nmia = "free"', format="toml")
    assert [document.tenant for document in registry.tenants] == ["Ada", "mia", "zoe"]


def test_json_and_toml_say_the_same() -> None:
    registry = parse_registry(EXAMPLE, format="toml")
    assert registry_from_json(registry_to_json(registry)) == registry


def test_equal_registries_have_equal_text() -> None:
    one = parse_registry('[tenants]\na = "free"\nb = "free"', format="toml")
    other = parse_registry('{"tenants": {"b": {"tier": "free"}, "a": "free"}}', format="json")
    assert registry_to_json(one) == registry_to_json(other)


def test_the_tiers_and_the_floor_that_exist_already_are_the_callers() -> None:
    mine = (Tier(TierName("only"), Weight(3.0)),)
    registry = parse_registry('tenants.a = "only"', format="toml", tiers=mine, floor=0.5)
    assert (registry.tiers, registry.floor) == (mine, 0.5)


def test_the_formats_are_listed_once() -> None:
    assert get_args(Format) == FORMATS == ("toml", "json", "csv", "backstage")


ONE_FAULT: list[tuple[str, str]] = [
    ("floor = nan", "floor: nan is not accepted; expected a number from 0 to 1"),
    ("floor = 1.01", "floor: 1.01 is not accepted; expected a number from 0 to 1"),
    ("floor = -inf", "floor: -inf is not accepted; expected a number from 0 to 1"),
    ("floor = true", "floor: True is not accepted; expected a number from 0 to 1"),
    (
        "floor = 1" + "0" * 400,
        "floor: a very large whole number is not accepted; expected a number from 0 to 1",
    ),
    (
        "floor = 2020-01-01",
        "floor: datetime.date(2020, 1, 1) is not accepted; expected a number from 0 to 1",
    ),
    (
        'floor = "0.5"',
        "floor: '0.5' is not accepted; expected a number from 0 to 1. "
        "Write a plain number, without quotes or unit.",
    ),
    (
        "tier.gold.weight = 4",
        "unknown key 'tier'; expected one of floor, tenants, tiers. Did you mean 'tiers'?",
    ),
    ("tiers = 3", "tiers: 3 is not accepted; expected a table"),
    ("tiers.gold = 4", "tiers.gold: 4 is not accepted; expected a table"),
    (
        "tiers.gold.cap = 0.5",
        "tiers.gold.weight: a missing value is not accepted; expected a number from 0.000001 to 1,000,000",
    ),
    (
        "tiers.gold = {weight = 4, wieght = 4}",
        "tiers.gold: unknown key 'wieght'; expected one of bound, cap, dedup_for, dedup_keys, "
        "dispatch_rate, pool, replayed_a_day, replays, shedding, submit_rate, weight. Did you mean 'weight'?",
    ),
    (
        "tiers.free.weight = 0",
        "tiers.free.weight: 0 is not accepted; expected a number from 0.000001 to 1,000,000",
    ),
    (
        "tiers.free.weight = -1.5",
        "tiers.free.weight: -1.5 is not accepted; expected a number from 0.000001 to 1,000,000",
    ),
    (
        "tiers.free.weight = true",
        "tiers.free.weight: True is not accepted; expected a number from 0.000001 to 1,000,000",
    ),
    ("tiers.free.cap = 0", "tiers.free.cap: 0 is not accepted; expected a number above 0, at most 1"),
    ("tiers.free.cap = 1.5", "tiers.free.cap: 1.5 is not accepted; expected a number above 0, at most 1"),
    (
        "tiers.free.bound = 0",
        'tiers.free.bound: 0 is not accepted; expected a whole number from 1 to 1,000,000,000, or "none"',
    ),
    (
        "tiers.free.bound = 2.0",
        'tiers.free.bound: 2.0 is not accepted; expected a whole number from 1 to 1,000,000,000, or "none"',
    ),
    (
        "tiers.free.submit_rate = inf",
        'tiers.free.submit_rate: inf is not accepted; expected a number from 0.00001 to 1,000,000, or "none"',
    ),
    (
        'tiers.free.shedding = "lst"',
        "tiers.free.shedding: 'lst' is not accepted; expected one of first, last, middle. Did you mean 'last'?",
    ),
    (
        'tiers.free.pool = "a b"',
        "tiers.free.pool: 'a b' is not accepted; expected 1 to 63 letters, digits, '.', '_' or '-', "
        "starting with a letter or digit",
    ),
    (
        "tiers.Free.weight = 1",
        "tiers.Free: 'Free' is not accepted; expected tiers whose names differ by more than case. "
        "'free' exists already.",
    ),
    (
        'tiers."g d".weight = 1',
        "tiers[\"g d\"]: 'g d' is not accepted; expected 1 to 63 letters, digits, '.', '_' or '-', "
        "starting with a letter or digit",
    ),
    ("tenants = []", "tenants: a list is not accepted; expected a table"),
    (
        "tenants.a = 1",
        "tenants.a: 1 is not accepted; expected the name of a tier, or a table with the key tier",
    ),
    (
        "tenants.a = {}",
        "tenants.a.tier: a missing value is not accepted; expected one of critical, enterprise, free, standard",
    ),
    (
        'tenants.a = "standart"',
        "tenants.a: 'standart' is not accepted; expected one of critical, enterprise, free, standard. "
        "Did you mean 'standard'?",
    ),
    (
        'tenants.a = {tier = "free", weight = 9}',
        "tenants.a: unknown key 'weight'; expected one of defaults, targets, tier",
    ),
    (
        'tenants."../etc" = "free"',
        "tenants[\"../etc\"]: '../etc' is not accepted; expected 1 to 63 letters, digits, '.', '_' or '-', "
        "starting with a letter or digit",
    ),
    (
        'tenants = {Acme = "free", acme = "free"}',
        "tenants.acme: 'acme' is not accepted; expected each tenant once, ids differing by more than case. "
        "'Acme' is at tenants.Acme already.",
    ),
    (
        'tenants.a = {tier = "free", defaults.timeout_for = "15s"}',
        "tenants.a.defaults.timeout_for: '15s' is not accepted; expected a number of seconds from 0.001 to 900. "
        "Write a plain number, without quotes or unit.",
    ),
    (
        'tenants.a = {tier = "free", defaults.url = "https://x"}',
        "tenants.a.defaults: unknown key 'url'; expected one of adaptive, backoff_base, backoff_cap, limit, max_attempts, "
        "secret, timeout_for",
    ),
    (
        'tenants.a = {tier = "free", targets."https://x.example/in".timeout_for = 901}',
        'tenants.a.targets["https://x.example/in"].timeout_for: 901 is not accepted; '
        "expected a number of seconds from 0.001 to 900",
    ),
    (
        'tenants.a = {tier = "free", targets.t.timeout_fro = 1}',
        "tenants.a.targets.t: unknown key 'timeout_fro'; expected one of adaptive, backoff_base, backoff_cap, limit, "
        "max_attempts, secret, timeout_for, url. Did you mean 'timeout_for'?",
    ),
    (
        'tenants.a = {tier = "free", targets.t.max_attempts = 0}',
        "tenants.a.targets.t.max_attempts: 0 is not accepted; expected a whole number from 1 to 100",
    ),
    (
        'tenants.a = {tier = "free", targets.t.limit = 0}',
        'tenants.a.targets.t.limit: 0 is not accepted; expected a whole number from 1 to 1,000,000, or "none"',
    ),
    (
        'tenants.a = {tier = "free", targets.t.backoff_base = 700}',
        "tenants.a.targets.t.backoff_cap: 600.0 is not accepted; expected at least backoff_base, which is 700",
    ),
    (
        'tenants.a = {tier = "free", defaults.backoff_base = 700, targets.t = {}, targets.u = {}}',
        "tenants.a.defaults.backoff_cap: 600.0 is not accepted; expected at least backoff_base, which is 700",
    ),
    (
        'tenants.a = {tier = "free", targets."https://u:pw@x.example/".limit = 1}',
        "tenants.a.targets[\"https://…@x.example/\"]: 'https://…@x.example/' is not accepted; expected an "
        "absolute http:// or https:// URL. Leave out the user name and password; sign deliveries with a secret "
        "instead.",
    ),
    (
        'tenants.a = {tier = "free", targets.t.url = "ftp://x.example/?key=pw"}',
        "tenants.a.targets.t.url: 'ftp://x.example/?…' is not accepted; expected an absolute http:// or "
        'https:// URL, or "none". It must start with http:// or https://, then a host.',
    ),
    (
        'tenants.a = {tier = "free", targets."".limit = 1}',
        "tenants.a.targets[\"\"]: '' is not accepted; expected text of 1 to 255 bytes without NUL",
    ),
]


@pytest.mark.parametrize(("text", "message"), ONE_FAULT, ids=[text[:48] for text, _ in ONE_FAULT])
def test_a_fault_is_told_once_with_its_path_value_and_what_is_accepted(text: str, message: str) -> None:
    error = faults(text)
    assert str(error) == message
    assert error.total == len(error.errors) == 1


UNREADABLE: list[tuple[Format, str | bytes, str]] = [
    ("toml", "", "document: an empty document is not accepted; expected a registry of tiers or tenants"),
    ("json", " \n", "document: an empty document is not accepted; expected a registry of tiers or tenants"),
    (
        "toml",
        "# only this",
        "document: an empty document is not accepted; expected a registry of tiers or tenants",
    ),
    ("json", "{}", "document: an empty document is not accepted; expected a registry of tiers or tenants"),
    ("json", "[]", "document: a list is not accepted; expected a table"),
    ("json", '"whsec_x"', "document: a secret (not shown) is not accepted; expected a table"),
    (
        "toml",
        "\ufefffloor = 1",
        "line 1, column 1: this text is not accepted; expected UTF-8 text without a byte order mark. "
        "Save it without one.",
    ),
    ("json", b"{\xe9}", "byte 1: this text is not accepted; expected UTF-8 text. Save it as UTF-8."),
    (
        "csv",
        "tenant,tier".encode("utf-16"),
        "byte 0: this text is not accepted; expected UTF-8 text. It looks like UTF-16: save it as UTF-8.",
    ),
    (
        "toml",
        "floor = 1\n\x00",
        "line 2, column 1: this text is not accepted; expected text without NUL characters. Is this a binary file?",
    ),
    (
        "toml",
        "floor = 0.5\nfloor = 0.5\n",
        "line 2, column 12: this text is not accepted; expected TOML. A key stands twice.",
    ),
    (
        "toml",
        "[tiers.a]\nweight = = 1",
        "line 2, column 10: this text is not accepted; expected TOML. Invalid value.",
    ),
    (
        "toml",
        "[tiers",
        "end of document: this text is not accepted; expected TOML. "
        "Expected ']' at the end of a table declaration.",
    ),
    (
        "json",
        '{"floor": 1,\n "floor": 1}',
        "floor: this text is not accepted; expected JSON with each key once in its table. This key stands twice.",
    ),
    ("json", '{"floor": NaN}', "document: NaN is not accepted; expected JSON, whose numbers are finite"),
    (
        "json",
        '{"floor": 1,\n}',
        "line 2, column 1: this text is not accepted; expected JSON. "
        "Expecting property name enclosed in double quotes.",
    ),
    (
        "json",
        "[" * 100_000,
        "document: this text is not accepted; expected JSON. It is nested too deeply to be a registry.",
    ),
    (
        "json",
        '{"a":' * 100_000,
        "document: this text is not accepted; expected JSON. It is nested too deeply to be a registry.",
    ),
    (
        "toml",
        "a = " + "[" * 100_000,
        "document: this text is not accepted; expected TOML. It is nested too deeply to be a registry.",
    ),
    ("xml", "<a/>", "format: 'xml' is not accepted; expected one of backstage, csv, json, toml"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("format", "text", "message"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_text_that_cannot_be_read_is_told_with_its_place(
    format: Format, text: str | bytes, message: str
) -> None:
    assert str(faults(text, format)) == message


def test_a_number_of_too_many_digits_is_a_fault_and_no_traceback() -> None:
    for format, text in (("toml", "floor = 1" + "0" * 5_000), ("json", '{"floor": 1' + "0" * 5_000 + "}")):
        assert "4300 digits" in str(faults(text, format))  # type: ignore[arg-type]


def test_neither_text_nor_bytes_is_a_fault() -> None:
    assert str(faults(None)) == "document: None is not accepted; expected text or bytes"


def test_all_faults_are_told_together_in_the_documents_order() -> None:
    error = faults('floor = 2\ntiers.free.cap = 7\n[tenants.a]\ntier = "freee"\nteir = 1')
    assert str(error).splitlines() == [
        "4 errors:",
        "  floor: 2 is not accepted; expected a number from 0 to 1",
        "  tiers.free.cap: 7 is not accepted; expected a number above 0, at most 1",
        "  tenants.a: unknown key 'teir'; expected one of defaults, targets, tier. Did you mean 'tier'?",
        "  tenants.a.tier: 'freee' is not accepted; expected one of critical, enterprise, free, standard. "
        "Did you mean 'free'?",
    ]
    assert [type(fault) for fault in error.errors] == [InvalidValue, InvalidValue, UnknownKey, InvalidValue]
    assert isinstance(error, UsageError)


def test_a_tier_whose_name_is_refused_is_not_named_as_one_that_exists() -> None:
    error = faults('tiers."g d".weight = 1\ntiers.Free.weight = 1\ntenants.a = "nobody"')
    assert error.total == 3
    assert str(error).endswith("expected one of critical, enterprise, free, standard")


def test_more_faults_than_a_screen_holds_are_counted() -> None:
    error = faults(json.dumps({"tenants": {f"t{n}": "nobody" for n in range(1_000)}}), "json")
    assert (len(error.errors), error.total) == (MOST_ERRORS, 1_000)
    assert str(error).startswith("1,000 errors:\n")
    assert str(error).endswith("\n  and 980 more")


@pytest.mark.parametrize(
    "body",
    [
        'defaults.secret = "whsec_c2hvcnQ="',
        'defaults.secret = "c2hvcnQgc2VjcmV0IHdpdGhvdXQgcHJlZml4"',
        f'defaults.secret = "{SECRET}!"',
        f'defaults.secret = "whsec_{"QUJD" * 30}"',
        f'defaults.secret = ["{SECRET}"]',
        f'defaults = "{SECRET}"',
        f'targets = "{SECRET}"',
        f'targets.t.url = "{SECRET}"',
        f'targets.t.timeout_for = "{SECRET}"',
        f'targets.t."{SECRET}" = 1',
        f'targets."{SECRET}" = 1',
        f'tier = "{SECRET}"',
    ],
)
def test_no_fault_shows_a_secret(body: str) -> None:
    tier = "" if body.startswith("tier") else 'tier = "free"\n'
    error = faults(f"[tenants.a]\n{tier}{body}")
    shown = str(error) + repr(error) + repr(error.errors)
    for part in ("MfKQ9r8GKYqr", "c2hvcnQ", "QUJD"):
        assert part not in shown


@pytest.mark.parametrize("size", [24, 64])
def test_a_signing_secret_has_24_to_64_bytes(size: int) -> None:
    import base64

    secret = "whsec_" + base64.b64encode(bytes(size)).decode()
    registry = parse_registry(f'tenants.a = {{tier = "free", defaults.secret = "{secret}"}}', format="toml")
    assert tenant(registry, "a").defaults.secret == secret
    assert secret not in repr(registry)


@pytest.mark.parametrize("url", ["http://2130706433/", "https://exämple.com/", "https://x.example/'\"'"])
def test_a_url_that_no_delivery_would_accept_is_refused_in_the_registry(url: str) -> None:
    document = {"tenants": {"a": {"tier": "free", "targets": {"t": {"url": url}}}}}
    error = faults(json.dumps(document), "json")
    assert "tenants.a.targets.t.url" in str(error)
    with pytest.raises(InvalidValue):
        check_url(url)


def test_several_secrets_are_kept_while_one_is_rotated_and_each_of_them_signs() -> None:
    both = f"{new_secret(SeededRandomness(1))} {SECRET}"
    registry = parse_registry(f'tenants.a = {{tier = "free", defaults.secret = "{both}"}}', format="toml")
    assert tenant(registry, "a").defaults.secret == both
    assert len(signing_keys(both)) == 2


@pytest.mark.parametrize("text", ["{0} whsec_x", "{0}  {0}", " {0}", "{0} ", "{0},{0}"])
def test_one_bad_secret_among_several_is_refused_and_none_is_shown(text: str) -> None:
    body = text.replace("{0}", SECRET)
    error = faults(f'tenants.a = {{tier = "free", defaults.secret = "{body}"}}')
    assert "separated by one space" in str(error)
    assert SECRET not in str(error)


def test_a_registry_made_by_hand_is_checked_for_fit() -> None:
    def acme(tier: str, name: str = "acme") -> TenantDocument:
        return TenantDocument(TenantId(name), TierName(tier))

    with pytest.raises(InvalidValue, match=r"tenants\.acme\.tier: 'gold' is not accepted"):
        Registry(tenants=(acme("gold"),))
    with pytest.raises(InvalidValue, match=r"tenants\.Acme: 'Acme' is not accepted.*'acme' exists already"):
        Registry(tenants=(acme("free"), acme("free", "Acme")))
    with pytest.raises(InvalidValue, match=r"tenants\.acme"):
        Registry(tenants=(acme("free"), acme("free")))
    with pytest.raises(InvalidValue, match=r"tiers\.free"):
        Registry(tiers=(*DEFAULT_TIERS, DEFAULT_TIERS[0]))
    with pytest.raises(InvalidValue, match=r"floor: 1\.5"):
        Registry(floor=1.5)

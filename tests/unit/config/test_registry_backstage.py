"""A Backstage catalogue, as its API returns it and as its files are."""

# ruff: noqa: E501 - messages stand as people see them, in one line

import json
import sys

import pytest

from tenantry.config.backstage import BackstagePlaces
from tenantry.config.registry import parse_registry
from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import MissingExtra

PLAIN = BackstagePlaces()
FILES = """\
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: payments
  labels: {tenantry.io/tier: critical}
spec: {type: service, lifecycle: production, owner: team-a}
---
apiVersion: backstage.io/v1alpha1
kind: component
metadata: {name: search, namespace: shop, annotations: {tenantry.io/tier: enterprise}}
---
---
kind: Component
metadata: {name: no, namespace: default}
spec: {tier: free}
---
kind: User
metadata: {name: ann}
"""


def entity(name: str = "a", tier: object = "free", **metadata: object) -> dict[str, object]:
    return {"kind": "Component", "metadata": {"name": name, **metadata}, "spec": {"tier": tier}}


def tiers_of(text: str, places: BackstagePlaces = PLAIN) -> dict[str, str]:
    registry = parse_registry(text, format="backstage", backstage=places)
    return {document.tenant: document.tier for document in registry.tenants}


def faults(text: str, places: BackstagePlaces = PLAIN) -> str:
    with pytest.raises(RegistryErrors) as caught:
        parse_registry(text, format="backstage", backstage=places)
    return str(caught.value)


def test_files_of_many_entities_name_tenants_by_namespace() -> None:
    assert tiers_of(FILES) == {"payments": "critical", "shop.search": "enterprise", "no": "free"}


def test_the_answers_of_the_api_are_read() -> None:
    entities = [entity("a", "free"), {"kind": "Group", "metadata": {"name": "g"}}]
    assert tiers_of(json.dumps(entities)) == {"a": "free"}
    assert tiers_of(json.dumps({"items": entities, "totalItems": 2, "pageInfo": {}})) == {"a": "free"}
    assert tiers_of(json.dumps(entities[0])) == {"a": "free"}


def test_json_needs_no_yaml_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "tenantry.config.yaml_text", raising=False)
    assert tiers_of(json.dumps([entity()])) == {"a": "free"}
    with pytest.raises(
        MissingExtra, match=r"a Backstage catalogue in YAML .*pip install 'tenantry\[registry\]'"
    ):
        tiers_of(FILES)


def test_where_the_tier_stands_and_what_it_is_called_are_settings() -> None:
    places = BackstagePlaces(
        kinds=("System",),
        tier_from=("spec.service.class", "label:tier"),
        aliases={"1": "critical", "LOW": "free"},
    )
    text = """\
kind: System
metadata: {name: a}
spec: {service: {class: 1}}
---
kind: System
metadata: {name: b, labels: {tier: low}}
spec: {service: {class: ""}}
"""
    assert tiers_of(text, places) == {"a": "critical", "b": "free"}


def test_an_entity_without_a_tier_gets_one_only_if_the_operator_says_so() -> None:
    text = json.dumps([{"kind": "Component", "metadata": {"name": "a"}}])
    assert faults(text) == (
        'entities[0] (component:default/a).metadata.labels["tenantry.io/tier"]: a missing value is not accepted; '
        "expected one of critical, enterprise, free, standard"
    )
    assert tiers_of(text, BackstagePlaces(tier_if_absent="free")) == {"a": "free"}
    assert faults(text, BackstagePlaces(tier_if_absent="fre")).startswith(
        "tier_if_absent: 'fre' is not accepted"
    )


@pytest.mark.parametrize(
    ("entities", "message"),
    [
        (
            [1],
            "entities[0]: 1 is not accepted; expected a catalogue entity: a table with kind, metadata and spec",
        ),
        (
            [{"metadata": {"name": "a"}}],
            "entities[0]: a table is not accepted; expected a catalogue entity: a table with kind, metadata and spec",
        ),
        (
            [{"kind": "Component", "metadata": 7, "spec": {"tier": "free"}}],
            "entities[0].metadata.name: a missing value is not accepted; expected 1 to 63 letters, digits, '.', '_' or '-', starting with a letter or digit",
        ),
        (
            [entity(namespace=["x"])],
            "entities[0].metadata.namespace: a list is not accepted; expected 1 to 63 letters, digits, '.', '_' or '-', starting with a letter or digit",
        ),
        (
            [entity("a", "golden")],
            "entities[0] (component:default/a).spec.tier: 'golden' is not accepted; expected one of critical, enterprise, free, standard",
        ),
        (
            [entity("a.b"), entity("b", namespace="a")],
            "entities[1].metadata.name: 'a.b' is not accepted; expected each tenant once, ids differing by more than case. 'a.b' is at entities[0].metadata.name already.",
        ),
        (
            [],
            "document: a registry without a tenant is not accepted; expected at least one. Look at the columns, kinds and filters of the export.",
        ),
    ],
)
def test_a_fault_is_told_with_the_entity_and_its_field(entities: list[object], message: str) -> None:
    assert faults(json.dumps(entities)) == message


@pytest.mark.parametrize("place", ["", "spec", "spec.", "spec..a", "label:", "tags:x", 5])
def test_a_place_is_a_label_an_annotation_or_a_field_of_spec(place: str) -> None:
    message = faults(json.dumps([entity()]), BackstagePlaces(tier_from=(place,)))
    assert message == f"tier_from: {place!r} is not accepted; expected label:KEY, annotation:KEY or spec.KEY"


def test_no_place_at_all_is_a_fault() -> None:
    message = faults(json.dumps([entity()]), BackstagePlaces(tier_from=()))
    assert message == "tier_from: a list is not accepted; expected at least one place"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: &x [1]\nb: *x",
            "line 2, column 4: this text is not accepted; expected YAML. Aliases are not read.",
        ),
        (
            "kind: a\nkind: b",
            "line 1, column 1: this text is not accepted; expected YAML. A key stands twice.",
        ),
        (
            "- " * 20_000,
            "document: this text is not accepted; expected YAML. It is nested too deeply to be a catalogue.",
        ),
        (
            "a: !!int",
            "line 1, column 4: this text is not accepted; expected YAML. Could not determine a constructor for the tag 'tag:yaml.org,2002:int'.",
        ),
        (
            "a: !!timestamp 2020-99-99",
            "line 1, column 4: this text is not accepted; expected YAML. Could not determine a constructor for the tag 'tag:yaml.org,2002:timestamp'.",
        ),
        (
            "a: !!python/object/apply:os.getcwd []",
            "line 1, column 4: this text is not accepted; expected YAML. Could not determine a constructor for the tag 'tag:yaml.org,2002:python/object/apply:os.getcwd'.",
        ),
        (
            "a: \x01",
            "document: this text is not accepted; expected YAML. Unacceptable character #x0001: special characters are not allowed.",
        ),
        (
            "a: [",
            "line 1, column 5: this text is not accepted; expected YAML. Expected the node content, but found '<stream end>'.",
        ),
    ],
)
def test_yaml_that_is_broken_or_dangerous_is_refused(text: str, message: str) -> None:
    assert faults(text) == message

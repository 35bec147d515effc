"""What is written is read back as it was."""

import json

from hypothesis import given, settings
from registries import documents, registries, tiers

from tenantry.config.documents import decode_document, decode_tier, encode_document, encode_tier
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry, registry_from_json, registry_to_json
from tenantry.config.tiers import Tier


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(tiers)
def test_a_tier_survives_json(tier: Tier) -> None:
    assert decode_tier(tier.name, json.loads(json.dumps(encode_tier(tier)))) == tier


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(documents())
def test_a_document_survives_json(document: TenantDocument) -> None:
    obj = json.loads(json.dumps(encode_document(document)))
    assert decode_document(document.tenant, document.tier, obj) == document


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(documents())
def test_a_document_survives_a_store_that_orders_keys_its_own_way(document: TenantDocument) -> None:
    obj = json.loads(json.dumps(encode_document(document), sort_keys=True))  # jsonb keeps no key order
    decoded = decode_document(document.tenant, document.tier, obj)
    assert decoded == document
    assert json.dumps(encode_document(decoded)) == json.dumps(encode_document(document))


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(registries())
def test_a_registry_survives_json_with_the_order_of_its_tiers(registry: Registry) -> None:
    text = registry_to_json(registry)
    assert registry_from_json(text) == registry
    assert registry_from_json(text.encode()) == registry


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(documents())
def test_no_representation_shows_a_secret(document: TenantDocument) -> None:
    secrets = [one.secret for one in (document.defaults, *document.targets.values()) if one.secret]
    assert not any(secret in repr(document) for secret in secrets)

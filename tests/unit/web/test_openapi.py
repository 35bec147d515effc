"""The OpenAPI document says what the API does."""

import json
from typing import Any

import pytest

from tenantry.web.api import openapi_document
from tenantry.web.operations import ALWAYS, OPERATIONS
from tenantry.web.problems import KINDS

DOCUMENT: dict[str, Any] = json.loads(openapi_document())


def references(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere() -> None:
    assert references(DOCUMENT)
    for reference in references(DOCUMENT):
        place = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        assert place


def test_every_operation_of_the_table_is_described() -> None:
    for operation in OPERATIONS:
        described = DOCUMENT["paths"][operation.path][operation.method.lower()]
        assert described["operationId"] == operation.name
        assert set(described["responses"]) == {
            str(operation.status),
            *(str(KINDS[name].status) for name in ALWAYS + operation.problems),
        }
        assert ("requestBody" in described) == bool(operation.body)


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_every_problem_is_documented_as_a_problem() -> None:
    responses = DOCUMENT["components"]["responses"]
    text = json.dumps(responses)
    for kind in KINDS.values():
        assert f"urn:tenantry:problem:{kind.name}`" in text
        response = responses[f"Problem{kind.status}"]
        assert list(response["content"]) == ["application/problem+json"]
        assert ("Retry-After" in response.get("headers", {})) == (kind.status in (429, 503))


def test_only_health_and_the_document_need_no_key() -> None:
    open_paths = {
        path
        for path, methods in DOCUMENT["paths"].items()
        if any(operation.get("security") == [] for operation in methods.values())
    }
    assert open_paths == {"/v1/health", "/v1/health/ready", "/v1/openapi.json"}
    assert DOCUMENT["security"] == [{"bearer": []}, {"key": []}]


def test_a_new_job_is_described_with_its_ranges() -> None:
    job = DOCUMENT["components"]["schemas"]["NewJob"]
    assert job["required"] == ["target"]
    assert job["additionalProperties"] is False
    assert job["properties"]["class"]["enum"] == ["live", "background", "replay"]
    assert job["properties"]["delay_for"]["maximum"] == 366 * 86_400
    assert job["oneOf"] == [{"required": ["payload"]}, {"required": ["payload_base64"]}]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_problems_have_a_plain_name_a_title_and_an_error_status(kind: Any) -> None:
    assert kind.name.replace("-", "").isalpha()
    assert 400 <= kind.status <= 599
    assert kind.title[0].isupper()

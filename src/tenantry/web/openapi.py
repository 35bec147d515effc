"""The OpenAPI 3.1 document, made from the table of operations and the records of the wire. Pure."""

from collections import defaultdict
from typing import Any

import msgspec

from tenantry.web import problems, wire
from tenantry.web.surface import Operation, Parameter, Surface

RETRIED = (429, 503)
_REF = "#/components/schemas/{name}"
_OPEN: dict[str, Any] = {"security": []}


def document(version: str, surface: Surface[Any]) -> dict[str, Any]:
    """The whole document of one application; ``version`` is the product's."""
    schemas, components = _schemas(surface)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": surface.title,
            "version": version,
            "summary": surface.summary,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": _paths(surface, schemas),
        "components": {"schemas": components, "securitySchemes": _SECURITY, "responses": _responses()},
    }


_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The API key"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key"},
}


def _records(surface: Surface[Any]) -> tuple[type, ...]:
    bodies = [record for operation in surface.operations for record in operation.body.values()]
    answers = [operation.answer for operation in surface.operations]
    return tuple(dict.fromkeys([*bodies, *answers, wire.Health, wire.Problem]))


def _schemas(surface: Surface[Any]) -> tuple[dict[type, Any], dict[str, Any]]:
    records = _records(surface)
    found, components = msgspec.json.schema_components(records, ref_template=_REF)
    for name, refine in _REFINED.items():
        if name in components:
            refine(components[name])
    return dict(zip(records, found, strict=True)), components


def _refine_jobs(schema: dict[str, Any]) -> None:
    rows = {"type": "array", "minItems": 1, "items": {"$ref": _REF.format(name="NewJob")}}
    schema["properties"]["jobs"] = rows


def _refine_job(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"required": ["payload"]}, {"required": ["payload_base64"]}]


def _refine_order(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"required": ["tenant"]}, {"required": ["target"]}]


_REFINED = {"NewJobs": _refine_jobs, "NewJob": _refine_job, "NewOrder": _refine_order}
"""What the records cannot say of themselves."""


def _paths(surface: Surface[Any], schemas: dict[type, Any]) -> dict[str, Any]:
    paths: dict[str, Any] = defaultdict(dict)
    for operation in surface.operations:
        paths[operation.path][operation.method.lower()] = _operation(operation, surface.always, schemas)
    live, ready = surface.health
    paths[live]["get"] = _health("live", "The process is there", schemas, ("internal-fault",))
    paths[ready]["get"] = _health("ready", "Its store answers", schemas, ("store-unavailable",))
    paths["/v1/openapi.json"]["get"] = {
        **_OPEN,
        "operationId": "openapi",
        "summary": "This document",
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {}}}}},
    }
    return dict(paths)


def _health(name: str, summary: str, schemas: dict[type, Any], kinds: tuple[str, ...]) -> dict[str, Any]:
    answer = {"description": summary, "content": {"application/json": {"schema": schemas[wire.Health]}}}
    return {
        **_OPEN,
        "operationId": name,
        "summary": summary,
        "responses": {"200": answer, **_references(kinds)},
    }


def _operation(
    operation: Operation[Any], always: tuple[str, ...], schemas: dict[type, Any]
) -> dict[str, Any]:
    path_parameters = [_ID] if "{id}" in operation.path else []
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": path_parameters + [_parameter(each) for each in operation.parameters],
        "responses": {
            str(operation.status): _success(operation, schemas),
            **_references(always + operation.problems),
        },
    }
    if operation.body:
        content = {media: {"schema": schemas[record]} for media, record in operation.body.items()}
        described["requestBody"] = {"required": True, "content": content}
    return described


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.meaning,
        "schema": parameter.schema,
    }


def _success(operation: Operation[Any], schemas: dict[type, Any]) -> dict[str, Any]:
    headers = {
        name: {"description": meaning, "schema": {"type": "string"}}
        for name, meaning in operation.headers.items()
    }
    answer = {
        "description": operation.summary,
        "content": {operation.media_type: {"schema": _answer_schema(operation, schemas)}},
    }
    return {**answer, "headers": headers} if headers else answer


def _answer_schema(operation: Operation[Any], schemas: dict[type, Any]) -> Any:
    """Of a stream: text, whose events carry the record."""
    if operation.media_type == "application/json":
        return schemas[operation.answer]
    return {"type": "string", "contentSchema": schemas[operation.answer]}


def _references(kinds: tuple[str, ...]) -> dict[str, Any]:
    statuses = sorted({problems.KINDS[kind].status for kind in kinds})
    return {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in statuses}


def _responses() -> dict[str, Any]:
    by_status: dict[int, list[problems.Kind]] = defaultdict(list)
    for kind in problems.KINDS.values():
        by_status[kind.status].append(kind)
    return {f"Problem{status}": _response(status, kinds) for status, kinds in sorted(by_status.items())}


def _response(status: int, kinds: list[problems.Kind]) -> dict[str, Any]:
    lines = [f"`{problems.PREFIX}{kind.name}`: {kind.title}." for kind in kinds]
    answer: dict[str, Any] = {
        "description": " ".join(lines),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    if status in RETRIED:
        header = {"description": "Seconds until trying again makes sense", "schema": {"type": "integer"}}
        answer["headers"] = {"Retry-After": header}
    return answer

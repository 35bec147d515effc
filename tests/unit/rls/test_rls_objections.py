"""What a plan refuses before it begins, and what it leaves to people, each said with its way out."""

from dataclasses import replace

import pytest

from tenantry.rls.declaration import parse_declaration
from tenantry.rls.facts import Column, Facts, Policy, Relation, Schema, Server
from tenantry.rls.plan import Plan, plan
from tenantry.rls.roles import Grant, Membership, Role

ALL = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})
NOTES = Relation(
    1, "public", "notes", "table", "owner",
    columns=(Column(1, "tenant_id", "integer", 23, not_null=True),),
    grants=(Grant("web", ALL),),
)  # fmt: skip
WORLD = Facts(
    Server(160004, "16.4", "shop", "owner", "owner"),
    roles={name: Role(oid, name) for oid, name in enumerate(("owner", "web", "reporting", "admin"), 10)},
    schemas={"public": Schema(1, "public", "owner", (Grant("public", frozenset({"USAGE"})),))},
    relations={1: NOTES},
)
DECLARED = 'roles = ["web"]\n[tables]\nnotes = {}\n[services]\nreporting = "totals"\n'


def planned(facts: Facts, declared: str = DECLARED) -> Plan:
    return plan(parse_declaration(declared), facts)


def with_role(name: str, **attributes: bool) -> Facts:
    return replace(WORLD, roles={**WORLD.roles, name: Role(99, name, **attributes)})


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            with_role("web", superuser=True),
            "policies do not hold web, which is a superuser. Let tenants' requests",
        ),
        (with_role("web", bypasses_rls=True), "which is BYPASSRLS. Let tenants' requests log in as a role"),
        (
            replace(
                with_role("admin", superuser=True), memberships=(Membership("admin", "web", inherits=False),)
            ),
            "which is a superuser, and web can SET ROLE admin. REVOKE admin FROM web",
        ),
        (
            replace(WORLD, memberships=(Membership("reporting", "web"),)),
            "serves all tenants: an application role must not reach it, and web inherits the rights",
        ),
        (
            replace(
                WORLD,
                memberships=(Membership("reporting", "web", inherits=False, may_set=False, is_admin=True),),
            ),
            "an application role must not reach it, and web can make itself its member",
        ),
        (
            replace(WORLD, policies=(Policy(8, 1, 'o"ld', True, "SELECT", ("web",), "true"),)),
            'say of public.notes that it replaces or keeps it: replaces = ["o\\"ld"]',
        ),
        (
            replace(WORLD, server=replace(WORLD.server, version=140001, version_text="14.1")),
            "need 15 or newer",
        ),
        (
            replace(WORLD, relations={1: replace(NOTES, extension="postgis")}),
            "public.notes belongs to the extension postgis: leave it out",
        ),
    ],
    ids=["superuser", "bypass", "set role", "service", "admin option", "policy", "old server", "extension"],
)
def test_what_would_leave_tenants_unprotected_is_refused_with_its_way_out(facts: Facts, said: str) -> None:
    found = planned(facts)
    assert found.steps == ()
    (objection,) = found.objections
    assert said in objection


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            replace(WORLD, relations={1: replace(NOTES, owner="web")}),
            "web owns public.notes, or can act as its owner, and an owner may switch row security off",
        ),
        (
            replace(WORLD, relations={1: replace(NOTES, columns=(Column(1, "tenant_id", "integer", 23),))}),
            "public.notes.tenant_id may be NULL, and such a row is nobody's",
        ),
        (
            replace(WORLD, relations={1: NOTES, 2: replace(NOTES, oid=2, name="drafts")}),
            "public.drafts has a column tenant_id and is not declared: its rows are not protected",
        ),
        (
            replace(
                WORLD,
                relations={
                    1: NOTES,
                    2: Relation(2, "public", "kept", "materialized view", "owner", reads=(1,),
                                grants=(Grant("web", frozenset({"SELECT"})),)),
                },
            ),
            "the materialized view public.kept holds rows of all tenants, and no policy can hold on it",
        ),
        (
            replace(WORLD, relations={1: replace(NOTES, grants=(Grant("public", frozenset({"TRUNCATE"})),))}),
            "everybody may TRUNCATE public.notes, which no policy stops",
        ),
    ],
    ids=["owner", "null", "undeclared", "materialized view", "truncate"],
)  # fmt: skip
def test_what_a_plan_leaves_to_people_is_remarked(facts: Facts, said: str) -> None:
    found = planned(facts)
    assert found.objections == ()
    assert any(said in each for each in found.remarks)


@pytest.mark.parametrize(
    ("kind", "column", "said"),
    [
        ("uuid", Column(1, "tenant_id", "uuid", 2950, not_null=True), ["app.tenant_id cannot name a tenant"]),
        ("bigint", Column(1, "tenant_id", "bigint", 20, not_null=True), []),
        ("text", Column(1, "tenant_id", "text", 25, not_null=True), []),
    ],
)
def test_tables_whose_tenants_no_text_can_name_alike_are_refused_on_one_setting(
    kind: str, column: Column, said: list[str]
) -> None:
    facts = replace(WORLD, relations={1: NOTES, 2: replace(NOTES, oid=2, name="other", columns=(column,))})
    declared = DECLARED.replace("notes = {}", f'notes = {{}}\nother = {{ type = "{kind}" }}')
    assert [each[:34] for each in planned(facts, declared).objections] == said


def test_a_policy_for_a_service_role_only_stands_in_nobodys_way() -> None:
    facts = replace(WORLD, policies=(Policy(8, 1, "engine", True, "ALL", ("reporting",), "true", "true"),))
    assert planned(facts).objections == ()


def test_roles_that_are_not_there_are_made_and_said_to_lack_a_password() -> None:
    facts = replace(WORLD, roles={"owner": WORLD.roles["owner"]})
    found = planned(facts)
    assert [step.title for step in found.steps][:2] == ["create the role web", "create the role reporting"]
    assert [step.down for step in found.steps][:2] == [(), ()]
    assert "web is made without a password: give it one, or a line in pg_hba.conf" in found.remarks

"""Each rule finds what is broken, nothing else does, and the twin that is right is left alone."""

from dataclasses import replace

import pytest
from rls_world import FactsAfter

from tenantry.rls import RULES, audit
from tenantry.testing.row_policies import Case, cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = cases()
ALIKE = frozenset({"covert", "operations"})
"""Families whose facts are kept alike by every server version."""

ON_18 = [pytest.param(18, case, id=f"18-{case.name}") for case in CASES]
ON_15 = [
    pytest.param(15, case, id=f"15-{case.name}")
    for case in {each.rule: each for each in CASES if each.server <= 15}.values()
    if case.family not in ALIKE
]
"""One case a rule, of what older servers keep in other words: trees of policies and views, memberships."""

on_each = pytest.mark.parametrize(("rls_server", "case"), [*ON_18, *ON_15], indirect=["rls_server"])


@on_each
async def test_the_rule_and_only_the_rule_is_found_where_it_is_broken(
    case: Case, facts_of_shop: FactsAfter
) -> None:
    facts = await facts_of_shop(case.broken)
    if case.version:
        facts = replace(facts, server=replace(facts.server, version=case.version))
    report = audit(facts, case.declared)
    found = (*report.findings, *(each for each in report.excused if each.rule == case.rule))
    assert {each.rule for each in found} == {case.rule, *case.also}, [each.message for each in found]


@on_each
async def test_nothing_is_found_in_the_twin_that_is_right(case: Case, facts_of_shop: FactsAfter) -> None:
    facts = await facts_of_shop(case.right)
    found = audit(facts, case.declared).findings
    assert [f"{each.key}: {each.message}" for each in found] == []


async def test_the_shop_that_cases_begin_with_is_clean(facts_of_shop: FactsAfter) -> None:
    report = audit(await facts_of_shop("SELECT 1"), cases()[0].declared)
    assert report.findings == ()
    assert report.scope.application == ("shop_app",)


async def test_every_rule_has_a_case_and_every_case_a_rule_of_its_family() -> None:
    families = {rule.name: rule.family.name.lower() for rule in RULES}
    assert {case.rule for case in CASES} == set(families)
    assert [case.name for case in CASES if families[case.rule] != case.family] == []

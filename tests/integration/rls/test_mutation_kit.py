"""Each rule finds what is broken, nothing else does, and the twin that is right is left alone.

Every case on the newest server; on the oldest as well one a rule, of what servers keep in other words by
their version: the trees of policies and views, memberships.
"""

from dataclasses import replace

import pytest
from rls_world import FactsAfter

from tenantry.rls import RULES, audit
from tenantry.testing.row_policies import Case, cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = cases()
ALIKE = frozenset({"covert", "operations"})
"""Families whose facts every version keeps alike."""

OF_EACH = {each.rule: each for each in CASES if each.server <= 15 and each.family not in ALIKE}
ON_BOTH = [pytest.param(case, id=case.name) for case in OF_EACH.values()]
ON_18 = [pytest.param(case, id=case.name) for case in CASES if case not in OF_EACH.values()]

on_newest = pytest.mark.parametrize("rls_server", [18], indirect=True)


@pytest.mark.parametrize("case", ON_BOTH)
async def test_the_rule_and_only_the_rule_is_found_where_it_is_broken(
    case: Case, facts_of_shop: FactsAfter
) -> None:
    await _is_found(case, facts_of_shop)


@on_newest
@pytest.mark.parametrize("case", ON_18)
async def test_the_rule_is_found_in_each_of_its_variants(case: Case, facts_of_shop: FactsAfter) -> None:
    await _is_found(case, facts_of_shop)


@pytest.mark.parametrize("case", ON_BOTH)
async def test_nothing_is_found_in_the_twin_that_is_right(case: Case, facts_of_shop: FactsAfter) -> None:
    await _is_clean(case, facts_of_shop)


@on_newest
@pytest.mark.parametrize("case", ON_18)
async def test_nothing_is_found_in_a_variants_twin(case: Case, facts_of_shop: FactsAfter) -> None:
    await _is_clean(case, facts_of_shop)


async def _is_found(case: Case, facts_of_shop: FactsAfter) -> None:
    facts = await facts_of_shop(case.broken)
    if case.version:
        facts = replace(facts, server=replace(facts.server, version=case.version))
    report = audit(facts, case.declared)
    found = (*report.findings, *(each for each in report.excused if each.rule == case.rule))
    assert {each.rule for each in found} == {case.rule, *case.also}, [each.message for each in found]


async def _is_clean(case: Case, facts_of_shop: FactsAfter) -> None:
    found = audit(await facts_of_shop(case.right), case.declared).findings
    assert [f"{each.key}: {each.message}" for each in found] == []


async def test_the_shop_that_cases_begin_with_is_clean(facts_of_shop: FactsAfter) -> None:
    report = audit(await facts_of_shop("SELECT 1"), cases()[0].declared)
    assert report.findings == ()
    assert report.scope.application == ("shop_app",)


async def test_every_rule_has_a_case_and_every_case_a_rule_of_its_family() -> None:
    families = {rule.name: rule.family.name.lower() for rule in RULES}
    assert {case.rule for case in CASES} == set(families)
    assert [case.name for case in CASES if families[case.rule] != case.family] == []

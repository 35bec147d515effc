"""Tenantry's own schema is the first customer of its audit."""

import pytest

from tenantry.postgres.catalogue import PostgresCatalogue
from tenantry.postgres.own_policies import OWN, accepted
from tenantry.postgres.urls import DatabaseUrls
from tenantry.rls import Facts, Report, audit
from tenantry.rls.model import Severity


@pytest.fixture
async def facts(database_urls: DatabaseUrls) -> Facts:
    return await PostgresCatalogue(database_urls.admin).facts()


@pytest.fixture
def report(facts: Facts) -> Report:
    return audit(facts, OWN, baseline=accepted())


def test_every_finding_is_mended_or_accepted_with_its_reason(report: Report) -> None:
    assert [f"{each.key}: {each.message}" for each in report.findings] == []


def test_nothing_is_accepted_that_is_no_longer_found(report: Report) -> None:
    assert report.stale == ()


def test_nothing_that_lets_a_tenant_reach_anothers_rows_is_accepted(report: Report) -> None:
    assert {each.rule for each in report.accepted if each.severity >= Severity.HIGH} <= {"on-conflict"}
    assert {each.family.value for each in report.accepted} == {
        "covert channels",
        "performance",
        "enforcement",
    }


def test_the_engine_is_excused_by_name_and_no_tenant_can_become_it(report: Report) -> None:
    assert {each.role for each in report.excused} == {"tenantry_engine"}
    assert report.scope.application == ("tenantry_tenant",)


def test_every_table_of_the_schema_with_a_tenant_is_looked_at(facts: Facts, report: Report) -> None:
    with_tenant = {
        each.oid
        for each in facts.relations.values()
        if each.schema == "tenantry" and each.is_table and each.column("tenant_id")
    }
    assert with_tenant == set(report.scope.tenant_tables)
    assert len(with_tenant) > 20

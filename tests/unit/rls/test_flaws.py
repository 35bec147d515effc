"""Known flaws go by the server's own version numbers."""

import pytest

from tenantry.rls.flaws import FLAWS, shown

BY_NAME = {flaw.name: flaw for flaw in FLAWS}


@pytest.mark.parametrize(
    ("name", "version", "affected"),
    [
        ("CVE-2016-2193", 90501, True),
        ("CVE-2016-2193", 90502, False),
        ("CVE-2016-2193", 90600, False),
        ("CVE-2023-39418", 150003, True),
        ("CVE-2023-39418", 150004, False),
        ("CVE-2023-39418", 140001, False),
        ("CVE-2024-10976", 170000, True),
        ("CVE-2024-10976", 170001, False),
        ("CVE-2024-10976", 180000, False),
        ("CVE-2025-8713", 160009, True),
        ("CVE-2025-8713", 160010, False),
    ],
)
def test_a_version_has_a_flaw_until_its_branch_is_mended(name: str, version: int, affected: bool) -> None:
    assert BY_NAME[name].affects(version) is affected


def test_versions_are_shown_as_people_write_them() -> None:
    assert [shown(each) for each in (90502, 160010)] == ["9.5.2", "16.10"]


def test_a_flaw_is_listed_once_and_with_one_version_a_branch() -> None:
    assert len(BY_NAME) == len(FLAWS)
    for flaw in FLAWS:
        branches = [each // 10000 if each >= 100000 else each // 100 for each in flaw.fixed]
        assert len(set(branches)) == len(branches)

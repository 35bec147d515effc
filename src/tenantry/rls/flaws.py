"""Known flaws of PostgreSQL's row security, and of what leaks past it, with the versions that mend them.

Source: the project's security page and release notes (postgresql.org/support/security). Only what lets a role
see or change rows that policies hide is here, not every flaw of the server. Versions are as the server counts
them: 160005 is 16.5, 90502 is 9.5.2.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flaw:
    """``fixed``: the first version without it, one a branch that ever had it."""

    name: str
    about: str
    fixed: tuple[int, ...]

    def affects(self, version: int) -> bool:
        """Whether a server of ``version`` has it."""
        return any(_branch(version) == _branch(each) and version < each for each in self.fixed)


def _branch(version: int) -> int:
    """10 and later count their branches in the first number, 9.5 and 9.6 in the first two."""
    return version // 10000 if version >= 100000 else version // 100


def shown(version: int) -> str:
    """``16.5``, ``9.5.2``."""
    if version >= 100000:
        return f"{version // 10000}.{version % 10000}"
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


FLAWS = (
    Flaw(
        "CVE-2016-2193",
        "a cached plan kept the policies of the role that it was made for",
        (90502,),
    ),
    Flaw(
        "CVE-2019-10130",
        "the planner ran leaky operators on statistics of rows that policies hide",
        (90517, 90613, 100008, 110003),
    ),
    Flaw(
        "CVE-2023-2455",
        "after inlining a function, policies of another role could be applied",
        (110020, 120015, 130011, 140008, 150003),
    ),
    Flaw(
        "CVE-2023-39418",
        "MERGE did not enforce the UPDATE and SELECT policies of its target",
        (150004,),
    ),
    Flaw(
        "CVE-2024-4317",
        "pg_stats_ext showed values of rows that the reader may not see; clusters made before the fix also "
        "need the script that its release notes name",
        (140012, 150007, 160003),
    ),
    Flaw(
        "CVE-2024-10976",
        "policies below subqueries, WITH queries and views of the caller could be those of another role",
        (120021, 130017, 140014, 150009, 160005, 170001),
    ),
    Flaw(
        "CVE-2025-8713",
        "statistics of partitions and children showed values that policies hide, by a leaky operator",
        (130022, 140019, 150014, 160010, 170006),
    ),
)

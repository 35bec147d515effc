"""ACLs are read as PostgreSQL's documentation writes them."""

from tenantry.postgres.acl import grants
from tenantry.rls.roles import PUBLIC, Grant


def test_letters_are_privileges_and_a_star_passes_them_on() -> None:
    found = grants(["app=ar*w/owner"])
    assert found == (Grant("app", frozenset({"INSERT", "SELECT", "UPDATE"}), frozenset({"SELECT"})),)


def test_an_empty_name_is_everybody() -> None:
    assert grants(["=X/owner"]) == (Grant(PUBLIC, frozenset({"EXECUTE"})),)


def test_a_quoted_name_may_hold_quotes_equals_signs_and_slashes() -> None:
    found = grants(['"odd ""na=me/"=U/"owner"'])
    assert found == (Grant('odd "na=me/', frozenset({"USAGE"})),)


def test_no_acl_grants_nothing() -> None:
    assert grants(None) == ()

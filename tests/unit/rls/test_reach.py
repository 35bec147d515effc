"""Which roles a role can act as, by the rules of PostgreSQL 16."""

from tenantry.rls.reach import Reach
from tenantry.rls.roles import Membership, Role

ROLES = {name: Role(number, name) for number, name in enumerate(("app", "group", "owner", "boss"))}


def reach(*memberships: Membership) -> Reach:
    return Reach(ROLES, memberships)


def test_what_is_inherited_is_inherited_through_groups() -> None:
    found = reach(Membership("group", "app"), Membership("owner", "group"))
    assert found.inherits("app") == {"app", "group", "owner"}


def test_a_link_that_does_not_inherit_ends_the_chain_but_may_be_set() -> None:
    found = reach(Membership("group", "app", inherits=False), Membership("owner", "group"))
    assert found.inherits("app") == {"app"}
    assert found.assumes("app") == found.acts_as("app") == {"app", "group", "owner"}


def test_a_link_that_may_not_be_set_still_inherits() -> None:
    found = reach(Membership("group", "app", may_set=False))
    assert found.assumes("app") == {"app"}
    assert found.acts_as("app") == {"app", "group"}


def test_after_set_role_the_rights_of_that_role_are_had_too() -> None:
    found = reach(
        Membership("group", "app", inherits=False), Membership("owner", "group", inherits=True, may_set=False)
    )
    assert found.acts_as("app") == {"app", "group", "owner"}
    assert found.way("app", "owner") == "app can SET ROLE group, which inherits the rights of owner"


def test_who_administers_a_role_can_grant_it_to_itself() -> None:
    found = reach(Membership("boss", "app", inherits=False, may_set=False, is_admin=True))
    assert found.acts_as("app") == {"app"}
    assert found.takes("app") == {"app", "boss"}


def test_memberships_may_form_a_circle_before_the_walk_ends() -> None:
    found = reach(Membership("group", "app"), Membership("app", "group"))
    assert found.inherits("app") == found.inherits("group") == {"app", "group"}

"""Which roles a role can act as: by inheriting their rights, by SET ROLE, by granting itself a membership.

Sources: PostgreSQL's documentation of role membership (chapter "Database Roles"), GRANT and SET ROLE. From
version 16 each membership says by itself whether it inherits and whether it may be SET; before, the member's
own INHERIT decided and SET ROLE was always allowed. Pure; a walk over the memberships, cached by role.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from tenantry.rls.roles import PUBLIC, Grant, Membership, Privilege, Role

_NONE: frozenset[str] = frozenset()


class Reach:
    """Not changed once made; the caches make it unfit for several threads at once."""

    def __init__(self, roles: Mapping[str, Role], memberships: Iterable[Membership]) -> None:
        self._roles = roles
        self._memberships = tuple(memberships)
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def inherits(self, role: str) -> frozenset[str]:
        """Itself and every role whose rights it has without asking: what privilege checks, ownership checks
        and the TO of policies go by."""
        return self._closure("inherits", role)

    def assumes(self, role: str) -> frozenset[str]:
        """Itself and every role that a session which logged in as it can SET ROLE to."""
        return self._closure("may_set", role)

    def acts_as(self, role: str) -> frozenset[str]:
        """Every role whose rights a session of it can use: inherited, or after SET ROLE."""
        key = ("acts", role)
        if key not in self._known:
            self._known[key] = _NONE.union(*(self.inherits(each) for each in self.assumes(role)))
        return self._known[key]

    def takes(self, role: str) -> frozenset[str]:
        """What :meth:`acts_as` would be once it had granted itself all that it holds ADMIN OPTION on."""
        found, before = self.acts_as(role), _NONE
        while found != before:
            before = found
            held = (each.role for each in self._memberships if each.is_admin and each.member in before)
            found = found.union(*(self.acts_as(each) for each in held))
        return found

    def way(self, role: str, to: str) -> str:
        """In words, how ``role`` comes to act as ``to``: "it inherits …", or "it can SET ROLE …"."""
        if to in self.inherits(role):
            return f"{role} inherits the rights of {to}"
        if to in self.assumes(role):
            return f"{role} can SET ROLE {to}"
        through = next(each for each in sorted(self.assumes(role)) if to in self.inherits(each))
        return f"{role} can SET ROLE {through}, which inherits the rights of {to}"

    def _closure(self, link: str, role: str) -> frozenset[str]:
        key = (link, role)
        if key not in self._known:
            found, waiting = {role}, [role]
            while waiting:
                for each in self._links[link].get(waiting.pop(), ()):
                    if each not in found:
                        found.add(each)
                        waiting.append(each)
            self._known[key] = frozenset(found)
        return self._known[key]

    @cached_property
    def _links(self) -> dict[str, dict[str, list[str]]]:
        found: dict[str, dict[str, list[str]]] = {"inherits": {}, "may_set": {}}
        for each in self._memberships:
            if each.inherits:
                found["inherits"].setdefault(each.member, []).append(each.role)
            if each.may_set:
                found["may_set"].setdefault(each.member, []).append(each.role)
        return found


def granted(grants: Iterable[Grant], roles: frozenset[str], privilege: Privilege) -> bool:
    """Whether one of ``roles``, or everybody, is granted ``privilege``."""
    return any(
        privilege in each.privileges for each in grants if each.grantee == PUBLIC or each.grantee in roles
    )

"""The baseline: findings that somebody has accepted, each with the reason, so that CI reports what is new.

A file is TOML::

    [accepted]
    "unforced-owner: table shop.invoices" = "the owner is the migration's login, and nobody else's"

Keys are those of :attr:`tenantry.rls.model.Finding.key`: they hold while the object keeps its name. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tenantry.config.syntax import decoded, parse_toml
from tenantry.kernel.errors import InvalidValue, UnknownKey, nearest
from tenantry.rls.model import Finding
from tenantry.rls.rules import BY_NAME

UNREASONED = "accepted when the baseline was written; say why"
"""What stands for a reason until a person has written one."""


def parse_baseline(text: str | bytes) -> Mapping[str, str]:
    """The accepted keys, each with its reason.

    Raises :class:`InvalidValue`, naming the place, for what is no such file, for a rule that there is none of
    (with the nearest one), and for a reason that is left out.
    """
    whole: Any = parse_toml(decoded(text, wanted="a baseline with [accepted]"))
    for key in whole:
        if key != "accepted":
            raise UnknownKey("", key, ("accepted",))
    accepted: Any = whole.get("accepted", {})
    if not isinstance(accepted, dict):
        raise InvalidValue("accepted", accepted, "a table of findings, each with the reason")
    for key, reason in accepted.items():
        _check(key, reason)
    return dict(accepted)


def _check(key: str, reason: object) -> None:
    rule, colon, subject = key.partition(": ")
    if not colon or not subject:
        raise InvalidValue("accepted", key, '"RULE: SUBJECT", as the audit prints it')
    if rule not in BY_NAME:
        near = nearest(rule, tuple(BY_NAME))
        hint = f"Did you mean {near!r}?" if near else "`tenantry rls rules` lists them."
        raise InvalidValue("accepted", rule, "a rule of the audit", hint)
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidValue(f"accepted.{key}", reason, "the reason, as text")


def written(findings: Iterable[Finding], reasons: Mapping[str, str]) -> str:
    """The file that accepts ``findings``, with the reasons that are known already."""
    keys = sorted({each.key for each in findings})
    lines = [f"{_quoted(key)} = {_quoted(reasons.get(key, UNREASONED))}" for key in keys]
    return "\n".join(["[accepted]", *lines, ""])


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in plain) + '"'

"""What a function may do that a rollback does not undo. Pure; it goes by the words in its body."""

import re

from tenantry.rls.facts import Function
from tenantry.rls.scene import Scene

_WORDS = re.compile(
    r"\b(dblink\w*|lo_export|pg_read_\w+|pg_file_\w+|pg_background\w*|http_\w+|net\.http\w*|setval|"
    r"pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_advisory_lock)\b|\bcopy\b[^;]*\b(program|to)\s+'",
    re.IGNORECASE,
)


def outside_of(scene: Scene, function: Function) -> str:
    """Why it is not set off: what it may do outside of the transaction, "" where nothing is known."""
    if function.extension:
        return ""
    language = scene.facts.languages.get(function.language)
    if function.language not in {"sql", "plpgsql"} and (language is None or not language.trusted):
        return f"it is written in {function.language}, which may do anything on the server"
    found = _WORDS.search(function.source)
    return f"its body says {found[0].strip()!r}" if found else ""


def set_off(scene: Scene) -> dict[int, str]:
    """Tables whose writes would set off such a trigger, each with why."""
    found: dict[int, str] = {}
    for trigger in scene.facts.triggers:
        function = scene.facts.functions.get(trigger.function)
        why = outside_of(scene, function) if function and trigger.enabled != "D" else ""
        if why:
            found[trigger.relation] = f"trigger {trigger.name}: {why}"
    return found


def named(scene: Scene) -> dict[str, str]:
    """By place, what was not set off and why: for the report."""
    known = scene.facts.relations
    triggers = {known[oid].title: why for oid, why in set_off(scene).items() if oid in known}
    called = {
        each.title: why
        for each in scene.own_functions()
        if each.security_definer and not each.is_trigger and (why := outside_of(scene, each))
    }
    return {**triggers, **called}

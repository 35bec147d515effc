"""Steps as a migration of Alembic, or of Django: files to put among one's own, with the way back. Pure.

Each step is a transaction of its own here too: one around all would hold the lock of every table until the
last one is done. A migration that fails half way can be run again, for each step may be run twice.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pprint import pformat

from tenantry.kernel.errors import InvalidValue
from tenantry.rls.plan import Plan
from tenantry.rls.render import Step
from tenantry.rls.script import Bounds, limits, messages, one_line, timeout

_REVISION = re.compile(r"[A-Za-z0-9_]{1,32}", re.ASCII)
_DJANGO = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\.([A-Za-z0-9_]+)", re.ASCII)
_BIND = re.compile(r"(?<![:\w\\]):(?=\w)")  # what SQLAlchemy's text() takes for a parameter

_ALEMBIC = '''"""Row policies: each tenant sees its own rows.

Revision ID: {revision}
Revises: {after}
"""

from alembic import op

revision = {revision!r}
down_revision = {after!r}
branch_labels = None
depends_on = None


def upgrade() -> None:
{upgrade}


def downgrade() -> None:
{downgrade}


def _commit() -> None:
    """Ends the transaction, and with it every lock, before the next step."""
    with op.get_context().autocommit_block():
        pass
'''

_DJANGO_FILE = '''"""Row policies: each tenant sees its own rows."""

from django.db import migrations


class Migration(migrations.Migration):
    atomic = False  # each step is a transaction of its own; an index is built outside of any

    dependencies = {dependencies!r}

    operations = [
{operations}
    ]
'''


def alembic_migration(plan: Plan, bounds: Bounds, *, after: str | None = None) -> str:
    """A revision file. ``after``: the revision that it comes after. Its own id follows from its content.

    Raises :class:`InvalidValue` for a revision that is none.
    """
    if after is not None and not _REVISION.fullmatch(after):
        raise InvalidValue("after", after, "the id of an Alembic revision, such as 3f2a9c1b7d5e")
    upgrade, downgrade = _alembic(plan.steps, bounds), _alembic(plan.back, bounds)
    revision = sha256((upgrade + downgrade).encode()).hexdigest()[:12]
    return _ALEMBIC.format(revision=revision, after=after, upgrade=upgrade, downgrade=downgrade)


def django_migration(plan: Plan, bounds: Bounds, *, after: str | None = None) -> str:
    """A migration file. ``after``: the migration that it comes after, as ``app.0001_initial``.

    Raises :class:`InvalidValue` for a name that is none.
    """
    found = None if after is None else _DJANGO.fullmatch(after)
    if after is not None and found is None:
        raise InvalidValue("after", after, "a Django migration as app_label.name, such as shop.0001_initial")
    operations = "\n".join(_operation(each, bounds) for each in plan.steps)
    dependencies = [] if found is None else [found.groups()]
    return _DJANGO_FILE.format(dependencies=dependencies, operations=operations)


def _alembic(steps: Iterable[Step], bounds: Bounds) -> str:
    lines = [line for step in steps for line in _alembic_step(step, bounds)]
    return "\n".join(lines or ["    pass  # there is nothing to do"])


def _alembic_step(step: Step, bounds: Bounds) -> Iterator[str]:
    yield f"    # {one_line(step.title)}"
    if not step.apart:
        yield from _executed((*limits(bounds), *step.up), "    ")
        yield "    _commit()"
        return
    yield "    with op.get_context().autocommit_block():"
    statements = [part for each in messages(step, bounds) for part in (timeout(each, bounds), each.sql)]
    yield from _executed((*statements, "RESET lock_timeout"), " " * 8)


def _executed(statements: Iterable[str], indent: str) -> Iterator[str]:
    return (f"{indent}op.execute({_literal(_unbound(each))})" for each in statements)


def _unbound(statement: str) -> str:
    return _BIND.sub(r"\:", statement)


def _operation(step: Step, bounds: Bounds) -> str:
    back = _sent(Step(step.title, step.down, (), step.apart, step.relations), bounds) if step.down else None
    sent = _listed(_sent(step, bounds))
    lines = [f"# {one_line(step.title)}", "migrations.RunSQL(", "    sql=[", *sent, "    ],"]
    if back is None:
        lines.append("    reverse_sql=migrations.RunSQL.noop,")
    else:
        lines += ["    reverse_sql=[", *_listed(back), "    ],"]
    return "\n".join(" " * 8 + line for line in (*lines, "),"))


def _sent(step: Step, bounds: Bounds) -> list[str]:
    found = messages(step, bounds)
    if not step.apart:
        return [each.sql for each in found]
    return [*(part for each in found for part in (timeout(each, bounds), each.sql)), "RESET lock_timeout"]


def _listed(statements: Iterable[str]) -> Iterator[str]:
    return (f"        {_literal(each)}," for each in statements)


def _literal(text: str) -> str:
    """``text`` as Python source that reads well: between triple quotes where nothing in it needs escaping."""
    plain = text.isascii() and text.replace("\n", "").isprintable() and "\\" not in text and '"""' not in text
    return (
        f'"""{text}"""' if plain and "\n" in text and not text.endswith('"') else pformat(text, width=10**6)
    )

"""Where a demo lives while it runs: a temporary directory, and a node in it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenantry.cli.settings import EVERYTHING, NodeSettings, Role
from tenantry.delivery.guard import AddressRule, networks


def settings(home: Path, *, slots: int, elsewhere: Role) -> NodeSettings:
    """A node with a server of its own in ``home``, that delivers to loopback and has every role but
    ``elsewhere``, which another process has."""
    loopback = AddressRule(allowed=networks(("127.0.0.0/8",)))
    roles = EVERYTHING - {Role.API, elsewhere}
    return NodeSettings(
        data_dir=home, migrate=True, roles=roles, name="demo", slots=slots, addresses=loopback
    )


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A directory that is gone afterwards. As root the server runs as another account, which must pass."""
    with tempfile.TemporaryDirectory(prefix="tenantry-demo-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made, "data")

"""The peers' own environment: ``benchmarks/.venv-peers``, made once from pinned versions."""

import hashlib
import subprocess
import venv
from pathlib import Path

from benchmarks.systems import HERE, PEERS_PYTHON

REQUIREMENTS = HERE / "peers" / "requirements.txt"
HOME = PEERS_PYTHON.parent.parent


def ensure() -> bool:
    """Make the environment unless it stands as the requirements say. True when it had to be made."""
    stamp, wanted = HOME / "installed.sha256", hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    print("installing the peers into benchmarks/.venv-peers (once)", flush=True)
    venv.create(HOME, with_pip=True, clear=True)
    pip = [str(PEERS_PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
    stamp.write_text(wanted)
    return True


def versions() -> dict[str, str]:
    """The pinned versions, by distribution."""
    lines = [line for line in _lines(REQUIREMENTS) if "==" in line]
    return {name.partition("[")[0]: version for name, _, version in (line.partition("==") for line in lines)}


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text().splitlines() if not line.startswith("#")]

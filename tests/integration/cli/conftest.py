"""The operator's commands in this process, on a database of their own."""

import sys
from pathlib import Path

import pytest
from cli_commands import REGISTRY, Command

from tenantry.cli import main as cli
from tenantry.postgres.urls import DatabaseUrls


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process; what it printed. ``code``: how it must end."""

    def run(*words: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["tenantry", *words])
        found = 0
        try:
            cli.main()
        except SystemExit as ended:
            found = int(ended.code or 0)
        shown = capsys.readouterr()
        assert found == code, shown
        return shown.out + shown.err

    return run


@pytest.fixture
def on(command: Command, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same, on a fresh database with the registry above."""
    monkeypatch.setenv("TENANTRY_DATABASE_URL", database_urls.admin)
    return command


@pytest.fixture
def registered(on: Command, tmp_path: Path) -> Command:
    file = tmp_path / "registry.toml"
    file.write_text(REGISTRY)
    on("tenants", "import", str(file), "--yes")
    return on

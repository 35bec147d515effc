"""The quickstart does what it says: its code blocks run, in order, as a newcomer runs them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_processes import bare_environment, up

from tenantry.cli import main as cli
from tenantry.kernel.errors import MissingExtra
from tenantry.postgres.binaries import packaged
from tenantry.telemetry.meters import METRICS, PREFIX

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
PAGES = ("quickstart.md", "operations.md")


def blocks(page: str, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall((DOCS / page).read_text()) if name == language]


@pytest.mark.needs_postgres
def test_the_quickstart_runs_as_it_stands(server_home: Path) -> None:
    try:
        packaged()
    except MissingExtra as missing:
        pytest.skip(str(missing))
    (server_home / "shop.py").write_text(blocks("quickstart.md", "python")[0])
    install, start, key, *rest = blocks("quickstart.md", "sh")
    assert ("pip install" in install, start, "TENANTRY_API_KEY" in key) == (
        True,
        "tenantry up --handlers shop\n",
        True,
    )
    with up(server_home / ".tenantry", "--handlers", "shop", cwd=server_home) as process:
        environment = {
            **bare_environment(),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # noqa: TID251 - for the shell
            "TENANTRY_API_KEY": process.told["api_key"],
            "TENANTRY_URL": process.told["api_url"],
        }
        for block in rest:
            script = block.replace("http://127.0.0.1:8080", process.told["api_url"])
            run_script(script, server_home, environment)
        process.signal(signal.SIGTERM)
        assert process.ended() == 0
    said = (server_home / "said.txt").read_text()
    assert said.count('"state":"waiting"') == 1
    assert "delivered after 1 attempt" in said
    assert "3 jobs accepted." in said
    assert "acme" in said


def run_script(script: str, home: Path, environment: dict[str, str]) -> None:
    with (home / "said.txt").open("ab") as said:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=home,
            env=environment,
            stdout=said,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, script + done.stderr.decode()


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_option_that_a_page_names_exists(page: str) -> None:
    text = (DOCS / page).read_text()
    named = set(
        re.findall(r"tenantry ((?:[a-z]+ ?){1,3})", " ".join(re.findall(r"`(tenantry [^`]*)`", text)))
    )
    for words in named:
        assert words.split()[0] in cli.COMMANDS, words
    page_of_commands = (DOCS / "cli.md").read_text()
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--fail"}:
        assert f"`{option}`" in page_of_commands, option


def test_every_metric_that_the_page_on_operations_names_exists() -> None:
    names = {PREFIX + metric.name for metric in METRICS}
    text = (DOCS / "operations.md").read_text()
    found = set(re.findall(r"tenantry_[a-z_]+", text)) - {"tenantry_engine", "tenantry_tenant"}
    assert found
    assert found <= names


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_page(page: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)", (DOCS / page).read_text()):
        assert (DOCS / link).exists(), link

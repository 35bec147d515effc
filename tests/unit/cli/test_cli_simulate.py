"""``tenantry simulate``: tables for people, one document for machines, pictures for both."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tenantry.cli.simulate import app
from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import InvalidValue, MissingExtra, UsageError

WORLD = """
lasts = 60
[targets.fast]
service = 0.2
[[tenants]]
name = "acme"
count = 5
rate = 0.5
target = "fast"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.toml").write_text(WORLD)
    return tmp_path


def said(*words: str, given: str | None = None) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False, input=given)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.usefixtures("home")
def test_a_world_is_told_policy_by_policy_with_the_slots_that_were_avoided() -> None:
    told = said("world", "world.toml")
    assert [line.split("  ")[0] for line in told.splitlines()[1:5]] == [
        "FIFO",
        "equal share",
        "weighted share",
        "ours",
    ]
    assert "Slots: 1 for what all do steadily, 2 with the buffer" in told
    assert said("world", "-", given=WORLD) == told


@pytest.mark.usefixtures("home")
def test_the_same_seed_gives_the_same_document_and_another_another() -> None:
    one, two, three = (said("world", "world.toml", "--json", "--seed", seed) for seed in "112")
    assert one == two != three
    assert json.loads(one)["world"] == {"name": "world", "tenants": 5, "lasts": 60.0, "seed": 1}


def test_pictures_are_written_as_svg_and_png(home: Path) -> None:
    said("world", "world.toml", "--policy", "ours", "--svg", "w.svg", "--png", "w.png")
    assert (home / "w.svg").read_text().startswith("<svg")
    assert (home / "w.png").read_bytes().startswith(b"\x89PNG")


def test_shapers_are_told_target_by_target(home: Path) -> None:
    words = ("shapers", "--target", "queueing", "--rule", "Vegas", "--seeds", "1")
    told = said(*words, "--svg", "s.svg", "--markdown", "s.md")
    assert told.splitlines()[0].split() == ["target", "ours", "Vegas"]
    assert told.splitlines()[1].startswith("queueing")
    assert (home / "s-latency.svg").exists()
    assert (home / "s.md").read_text().startswith("| target | ours | Vegas |")
    (line,) = json.loads(said(*words, "--json"))
    assert line["target"] == "queueing"
    assert line["scores"]["ours"] > line["scores"]["Vegas"]


def test_an_incident_is_told_tier_by_tier_beside_the_fluid_schedule(home: Path) -> None:
    words = ("incident", "--replays", "5", "--slots", "20", "--median", "20", "--largest", "500")
    told = said(*words, "--svg", "i.svg")
    assert [line.split()[0] for line in told.splitlines()[:4]] == ["tier", "critical", "standard", "basic"]
    assert "largest: 500 messages, 500 delivered" in told
    assert (home / "i.svg").read_text().startswith("<svg")
    document = json.loads(said(*words, "--json"))
    assert document["incident"]["replays"] == 5
    assert {tier["tier"] for tier in document["tiers"]} == {"critical", "standard", "basic"}


@pytest.mark.usefixtures("home")
def test_what_cannot_be_simulated_is_refused_with_its_place() -> None:
    run = CliRunner()
    with pytest.raises(UsageError, match=r"none\.toml cannot be read"):
        run.invoke(app, ["world", "none.toml"], catch_exceptions=False)
    with pytest.raises(InvalidValue, match="--policy: 'fifo'"):
        run.invoke(app, ["world", "--policy", "fifo"], catch_exceptions=False)
    with pytest.raises(InvalidValue, match=r"--target: 'queuing'.*Did you mean 'queueing'"):
        run.invoke(app, ["shapers", "--target", "queuing"], catch_exceptions=False)
    with pytest.raises(RegistryErrors, match="tenants"):
        run.invoke(app, ["world", "-"], catch_exceptions=False, input="lasts = 5")
    with pytest.raises(UsageError, match="cannot be written"):
        run.invoke(app, ["world", "world.toml", "--svg", "no/w.svg"], catch_exceptions=False)


@pytest.mark.usefixtures("home")
def test_png_without_its_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tenantry\[plots\]'"):
        CliRunner().invoke(app, ["world", "world.toml", "--png", "w.png"], catch_exceptions=False)

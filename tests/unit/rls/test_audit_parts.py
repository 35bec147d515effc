"""What an audit is written as and compared with, without a database."""

import sys
from pathlib import Path

import pytest

from tenantry.cli import main as cli
from tenantry.kernel.errors import InvalidValue
from tenantry.rls import RULES
from tenantry.rls.baseline import parse_baseline, written
from tenantry.rls.model import Family, Finding, Severity
from tenantry.rls.pages import page

PAGE = Path(__file__).parents[3] / "docs" / "rls-rules.md"


def finding(subject: str, rule: str = "rls-off") -> Finding:
    return Finding(
        rule=rule, family=Family.ENFORCEMENT, severity=Severity.HIGH, subject=subject, message="m",
        mechanism="x", fix="f",
    )  # fmt: skip


def test_the_page_of_rules_is_drawn_from_the_rules() -> None:
    assert PAGE.read_text() == page(), "run: tenantry rls rules --page > docs/rls-rules.md"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_says_what_how_and_what_to_do_in_whole_sentences(rule: object) -> None:
    texts = [getattr(rule, each) for each in ("summary", "mechanism", "fix")]
    assert [text for text in texts if not text.endswith((".", ".)")) or text != text.strip()] == []


def test_a_baseline_keeps_the_reasons_that_were_written(tmp_path: Path) -> None:
    odd = 'table shop."odd ""name\\"\n'
    first = parse_baseline(written([finding("table a"), finding(odd)], {"rls-off: table a": "known"}))
    assert first["rls-off: table a"] == "known"
    assert set(first) == {"rls-off: table a", f"rls-off: {odd}"}
    assert parse_baseline(written([finding("table a"), finding(odd)], first)) == first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[accepted]\n'rls-of: table a' = 'why'", "rls-off"),
        ("[accepted]\n'rls-off' = 'why'", "RULE: SUBJECT"),
        ("[accepted]\n'rls-off: table a' = ' '", "the reason"),
        ("[accepted]\n'rls-off: table a' = 3", "the reason"),
        ("accepted = 3", "a table"),
        ("[acepted]", "accepted"),
        ("[", "TOML"),
    ],
)
def test_a_baseline_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_baseline(text)
    assert said in str(refused.value)


def test_the_command_tells_of_one_rule_and_names_the_nearest_for_a_slip(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tenantry", "rls", "rules", "definer-view"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert "security_invoker" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["tenantry", "rls", "rules", "definer-vew"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "'definer-view'" in capsys.readouterr().err

"""The page on delivery says what the code does."""

from pathlib import Path

from tenantry.lanes.outcome import CAUSES

PAGE = Path(__file__).parents[3] / "docs" / "delivery.md"


def test_the_table_of_error_classes_in_the_docs_is_the_tables_in_the_code() -> None:
    rows = [
        f"| `{name}` | {c.fault} | {'yes' if c.final else ''} | {c.meaning} |" for name, c in CAUSES.items()
    ]
    told = [line for line in PAGE.read_text().splitlines() if line.startswith("| `") and line.count("|") == 5]
    assert told == rows

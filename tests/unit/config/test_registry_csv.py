"""A service-criticality registry as CSV."""

# ruff: noqa: E501 - messages stand as people see them, in one line

import pytest

from tenantry.config.csv_registry import CsvColumns
from tenantry.config.registry import parse_registry
from tenantry.config.tiers import DEFAULT_TIERS
from tenantry.config.validation import RegistryErrors

PLAIN = CsvColumns()
CRITICALITY = CsvColumns(
    tenant="service",
    tier="criticality",
    aliases={"Tier-1": "critical", "tier-2": "enterprise"},
    delimiter=";",
)


def tiers_of(text: str | bytes, columns: CsvColumns = PLAIN) -> dict[str, str]:
    registry = parse_registry(text, format="csv", csv=columns)
    assert registry.tiers == DEFAULT_TIERS
    return {document.tenant: document.tier for document in registry.tenants}


def faults(text: str, columns: CsvColumns = PLAIN) -> str:
    with pytest.raises(RegistryErrors) as caught:
        parse_registry(text, format="csv", csv=columns)
    return str(caught.value)


def test_a_row_is_a_tenant_and_other_columns_are_ignored() -> None:
    assert tiers_of("owner,tenant,tier\nann,acme,free\n\nbob, zoe , critical \n") == {
        "acme": "free",
        "zoe": "critical",
    }


def test_columns_and_words_of_another_registry_are_mapped() -> None:
    text = "service;criticality\npay;TIER-1\nsearch;tier-2\nblog;free\n"
    assert tiers_of(text, CRITICALITY) == {"pay": "critical", "search": "enterprise", "blog": "free"}


def test_what_spreadsheets_write_is_read() -> None:
    assert tiers_of("\ufefftenant,tier\r\nacme,free\r\n,,\r\n".encode()) == {"acme": "free"}
    assert tiers_of("tenant,tier\racme,free\r") == {"acme": "free"}
    assert tiers_of("tenant\ttier\nacme\tfree", CsvColumns(delimiter="\t")) == {"acme": "free"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tenant,teir\nacme,free",
            "line 1: a header with no column named 'tier' is not accepted; expected one, beside 'tenant', 'teir'. Did you mean 'teir'?",
        ),
        (
            "\ntier,tenant,tier\n",
            "line 2: a header with 2 columns named 'tier' is not accepted; expected one, beside 'tier', 'tenant', 'tier'. The column names are a setting.",
        ),
        (
            ",,\n,",
            "line 1: a header with no column named 'tenant' is not accepted; expected one. The column names are a setting.",
        ),
        (
            "tenant,tier",
            "document: a registry without a tenant is not accepted; expected at least one. Look at the columns, kinds and filters of the export.",
        ),
        (
            "tenant,tier\nacme,gold",
            "line 2, column tier: 'gold' is not accepted; expected one of critical, enterprise, free, standard",
        ),
        (
            "tenant,tier\nacme",
            "line 2, column tier: a missing value is not accepted; expected one of critical, enterprise, free, standard",
        ),
        (
            "tenant,tier\n,free",
            "line 2, column tenant: a missing value is not accepted; expected 1 to 63 letters, digits, '.', '_' or '-', starting with a letter or digit",
        ),
        (
            "tenant,tier\nacme,free,x",
            "line 2: a row of 3 cells is not accepted; expected 2, as in the header. Quote cells that hold the delimiter.",
        ),
        (
            'note,tenant,tier\n"two\nlines",acme,free\nx,acme,free',
            "line 4, column tenant: 'acme' is not accepted; expected each tenant once, ids differing by more than case. 'acme' is at line 2, column tenant already.",
        ),
        (
            "tenant,tier\nAcme,free\nacme,free",
            "line 3, column tenant: 'acme' is not accepted; expected each tenant once, ids differing by more than case. 'Acme' is at line 2, column tenant already.",
        ),
        (
            'tenant,tier\n"acme,free\n',
            "line 2: this text is not accepted; expected CSV. Unexpected end of data.",
        ),
        (
            "tenant,tier\n" + "a" * 140_000 + ",free",
            "line 2: this text is not accepted; expected CSV. Field larger than field limit (131072).",
        ),
    ],
)
def test_a_fault_is_told_with_line_and_column(text: str, message: str) -> None:
    assert faults(text) == message


def test_an_alias_for_no_tier_is_told_before_the_rows_are_read() -> None:
    columns = CsvColumns(aliases={"tier-1": "kritical"})
    assert faults("tenant,tier\na,b", columns) == (
        "aliases['tier-1']: 'kritical' is not accepted; expected one of critical, enterprise, free, standard. "
        "Did you mean 'critical'?"
    )


@pytest.mark.parametrize("delimiter", ["", "ab", '"', " ", "\n", "\r", "\x00"])
def test_a_delimiter_is_one_character(delimiter: str) -> None:
    assert faults("tenant,tier\na,free", CsvColumns(delimiter=delimiter)).startswith("delimiter: ")


def test_rows_after_a_faulty_one_are_still_checked() -> None:
    assert faults("tenant,tier\na,gold\nb,free\nc,silver").splitlines()[0] == "2 errors:"

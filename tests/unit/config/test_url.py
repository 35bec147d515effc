"""Which text may be a delivery URL."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from tenantry.config.url import check_url, problem_of
from tenantry.kernel.errors import InvalidValue


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com",
        "https://example.com/hooks/7?x=1&ids[]=2&to=a@b",
        "HTTPS://Example.COM:65535/",
        "http://example.com.:80/",
        "http://127.0.0.1:8080/%2e%2e/raw%2Fpath",
        "http://[2001:db8::1]:8080/",
        "http://[::ffff:127.0.0.1]/",
        "http://my_host.internal?x",
        "http://xn--bcher-kva.example/",
        "http://1password.com/",
        "http://0x7f.example/",
    ],
)
def test_plain_urls_are_accepted(text: str) -> None:
    check_url(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "http://"),
        ("example.com/hook", "http://"),
        ("ftp://example.com/", "http://"),
        ("file:///etc/passwd", "http://"),
        ("javascript:alert(1)", "http://"),
        ("//example.com/", "http://"),
        ("http:/example.com", "http://"),
        ("http:///path", "host"),
        ("http://:80/", "host"),
        ("http://user:pw@example.com/", "user name"),
        ("http://example.com:80@127.0.0.1/", "user name"),
        ("http://@example.com/", "user name"),
        ("http://example.com#@127.0.0.1/", "fragment"),
        ("http://example.com\\@127.0.0.1/", "Percent-encode"),
        ("http://example.com/a b", "Percent-encode"),
        ("http://example.com/\r\nX: y", "Percent-encode"),
        ("http://example.com/\n", "Percent-encode"),
        ("http://exämple.com/", "Percent-encode"),
        ("http://①②⑦.0.0.1/", "Percent-encode"),
        ("http://example.com/\x00", "Percent-encode"),
        ("http://example.com:0/", "port"),
        ("http://example.com:65536/", "port"),
        ("http://example.com:/", "port"),
        ("http://example.com:80:90/", "port"),
        ("http://example.com:+80/", "port"),
        ("http://0x7f.1/", "four decimal"),
        ("http://0x7f000001/", "four decimal"),
        ("http://2130706433/", "four decimal"),
        ("http://017700000001/", "four decimal"),
        ("http://127.1/", "four decimal"),
        ("http://127.0.0.01/", "four decimal"),
        ("http://127.0.0.1./", "four decimal"),
        ("http://256.0.0.1/", "four decimal"),
        ("http://a.b.0x/", "four decimal"),
        ("http://[::1%25eth0]/", "brackets"),
        ("http://[fe80::1%eth0]/", "brackets"),
        ("http://[127.0.0.1]/", "brackets"),
        ("http://[::1/", "start"),
        ("http://[::1]x/", "start"),
        ("http://::1/", "port"),
        ("http://-a.example/", "host"),
        ("http://a..example/", "host"),
        ("http://example.com../", "host"),
        ("http://" + "a" * 64 + ".example/", "host"),
        ("http://%31%32%37.0.0.1/", "host"),
        ("http://example.com/" + "a" * 2_048, "2048"),
    ],
)
def test_ambiguous_or_foreign_urls_are_refused_with_what_to_change(text: str, says: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        check_url(text, path="jobs[3].target")
    assert refusal.value.path == "jobs[3].target"
    assert says in refusal.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "http://user:hunter2@example.com/",
        "ftp://example.com/hunter2",
        "http://x y/hunter2?token=hunter2",
        "hunter2@",
    ],
)
def test_a_refusal_shows_no_part_that_carries_credentials(text: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        check_url(text)
    assert "hunter2" not in str(refusal.value)
    assert "hunter2" not in repr(refusal.value)


AUTHORITY = re.compile(r"[a-zA-Z]+://(?P<host>\[[^]]*\]|[^:/?]*)(?::(?P<port>\d+))?(?=[/?]|$)")
HOSTS = st.sampled_from(
    ["example.com", "127.0.0.1", "[::1]", "0x7f.1", "a@b", "a\\b", "a:1", "①.com", "a%2eb", ""]
)
PARTS = st.text(alphabet="abz019.:@/?#[]\\%-_ \t\n", max_size=12)


@given(st.sampled_from(["http", "https", "HTTP"]), HOSTS, PARTS)
def test_the_http_client_reads_the_same_host_and_port_in_every_accepted_url(
    scheme: str, host: str, rest: str
) -> None:
    text = f"{scheme}://{host}{rest}"
    if problem_of(text) is not None:
        return
    url = URL(text, encoded=True)
    plain = AUTHORITY.match(text)
    assert plain is not None
    assert (url.raw_host or "").lower() == plain["host"].strip("[]").lower()
    assert url.port == int(plain["port"] or {"http": 80, "https": 443}[scheme.lower()])
    assert url.raw_user is None

"""API keys: made once, shown once, stored as a hash, compared in constant time."""

import hashlib
import zlib

import pytest

from tenantry.config.api_keys import hash_secret, make_api_key, matches, parse_api_key
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import SeededRandomness, SystemRandomness


class Fixed:
    """The same byte, drawn again and again."""

    def __init__(self, byte: int) -> None:
        self.byte = byte

    def token(self, size: int) -> bytes:
        return bytes([self.byte]) * size

    def uniform(self, low: float, high: float) -> float:
        raise AssertionError("a key draws tokens only")

    def time_ordered_id(self) -> str:
        raise AssertionError("a key draws tokens only")


def test_a_made_key_parses_to_its_id_and_matches_its_hash() -> None:
    made = make_api_key(SystemRandomness())
    presented = parse_api_key(made.text)
    assert presented.key_id == made.key_id
    assert matches(presented, made.secret_hash)


def test_another_keys_secret_does_not_match() -> None:
    randomness = SeededRandomness(1)
    one, other = make_api_key(randomness), make_api_key(randomness)
    assert one.key_id != other.key_id
    assert not matches(parse_api_key(one.text), other.secret_hash)
    assert not matches(parse_api_key(one.text), b"")


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xFF])
def test_every_draw_gives_a_key_of_the_same_length(byte: int) -> None:
    made = make_api_key(Fixed(byte))
    assert len(made.text) == 70
    assert matches(parse_api_key(made.text), made.secret_hash)


def test_the_form_is_what_scanners_are_told() -> None:
    text = make_api_key(Fixed(0)).text
    body, checksum = text[:-6], text[-6:]
    assert body == "tk_" + "0" * 17 + "_" + "0" * 43
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    number = 0
    for character in checksum:
        number = number * 62 + digits.index(character)
    assert number == zlib.crc32(body.encode())


def test_the_hash_is_sha_256_of_the_secret() -> None:
    made = make_api_key(SeededRandomness(2))
    secret = parse_api_key(made.text).secret
    assert made.secret_hash == hash_secret(secret) == hashlib.sha256(secret.encode()).digest()


def test_any_single_slip_is_refused_without_a_query() -> None:
    text = make_api_key(SeededRandomness(3)).text
    for index in range(len(text)):
        slip = text[:index] + ("a" if text[index] != "a" else "b") + text[index + 1 :]
        with pytest.raises(InvalidValue):
            parse_api_key(slip)


def test_a_slip_is_told_from_a_text_that_is_no_key() -> None:
    text = make_api_key(SeededRandomness(4)).text
    with pytest.raises(InvalidValue) as mistyped:
        parse_api_key(text[:-1] + ("a" if text[-1] != "a" else "b"))
    assert str(mistyped.value) == (
        "api_key: a key (not shown) is not accepted; expected an API key whose checksum fits. "
        "A character was mistyped or lost."
    )
    with pytest.raises(InvalidValue) as other:
        parse_api_key("Bearer " + text, path="Authorization")
    assert str(other.value) == (
        "Authorization: a key (not shown) is not accepted; expected an API key: tk_, 17 letters or digits, "
        "_, and 49 letters or digits. Paste it whole, as it was shown when it was made."
    )


@pytest.mark.parametrize(
    "text", ["", "tk_", None, 7, b"tk_", "tk_" + "٣" * 67, "\x00" * 70, "tk_" + "a" * 100_000]
)
def test_what_is_no_key_is_refused(text: object) -> None:
    with pytest.raises(InvalidValue):
        parse_api_key(text)


def test_a_key_with_a_line_end_is_refused() -> None:
    with pytest.raises(InvalidValue):
        parse_api_key(make_api_key(SeededRandomness(5)).text + "\n")


def test_no_representation_shows_the_secret() -> None:
    made = make_api_key(SeededRandomness(6))
    presented = parse_api_key(made.text)
    shown = f"{made} {made!r} {presented} {presented!r}"
    assert presented.secret not in shown
    assert presented.key_id in shown
    assert repr(made.secret_hash) not in shown

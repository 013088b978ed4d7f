"""Values of variables that are worth hiding, and the spellings in which they are printed."""

import re

MIN_CHARS = 8
"""A shorter value would be found inside ordinary words."""
WORD_CHARS = 16
"""Letters or digits alone are a word or a number up to here."""

_MIN_DIFFERENT = 5
_MAX_SPARE_DIGITS = 8
_COMMON_TEXT = (
    "access account admin administrator amqp amqps anonymous api app application auth aws backend "
    "base begin bearer bucket cache certificate change changeme ci client cluster com cookie "
    "database db debug default demo dev development disabled docker dsa dummy ec empty enabled end "
    "env example fake false file foo bar baz frontend git github guest host http https id inherit "
    "internal io json key keys local localhost master me memory mongo mongodb my mysql name no "
    "none not null off on openssh org pass password path pg placeholder port postgres postgresql "
    "private prod production project public rabbitmq readonly redis rediss region required root "
    "rsa sample secret secrets server service session sk sqlite ssh ssl staging stage store string "
    "svc system tcp test testing tests tls token true type undefined unset url user username value "
    "values web world www xxx yes your"
)
_COMMON = frozenset(_COMMON_TEXT.split())
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s]*)"
_DENSE = r"[A-Za-z0-9+/=_-]{20,}"


def is_secret_value(value: str) -> bool:
    """Whether a value can be hidden without hiding ordinary text with it."""
    if len(value) < MIN_CHARS or len(set(value)) < _MIN_DIFFERENT:
        return False
    if len(value) < WORD_CHARS and (value.isalpha() or not any(map(str.isalpha, value))):
        return False
    words = re.findall(r"[A-Za-z]+", value)
    digits = sum(map(str.isdigit, value))
    if value.isascii() and digits <= _MAX_SPARE_DIGITS and _has_only_common_words(words):
        return False
    return not _is_open_address(value)


def list_value_spellings(value: str) -> set[str]:
    """The value as programs print it: plain, in JSON, quoted for a shell, line by line."""
    plain = {value, value.strip()}
    plain.add(encode_value(value).decode("utf-8", "replace").strip())
    plain |= _find_url_passwords(value)
    plain |= {line for line in map(str.strip, value.splitlines()) if _is_dense(line)}
    return _expand_spellings(plain)


def encode_value(value: str) -> bytes:
    """The bytes of a value; those of the environment need not be UTF-8."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half of a character, which only settings can hold.
        return value.encode("utf-8", "surrogatepass")


def list_password_spellings(value: str) -> set[str]:
    """The password inside an address such as `https://user:password@host`, as it is printed."""
    return _expand_spellings(_find_url_passwords(value))


def _find_url_passwords(value: str) -> set[str]:
    found = re.match(_URL, value)
    user, at, _ = found[1].rpartition("@") if found else ("", "", "")
    password = user.partition(":")[2] if at else ""
    return {password, _unquote(password)}


def _expand_spellings(texts: set[str]) -> set[str]:
    spelled = set(texts)
    for text in texts:
        spelled |= _escape(text)
    return {text for text in spelled if is_secret_value(text)}


def _has_only_common_words(words: list[str]) -> bool:
    return all(word.lower() in _COMMON for word in words)


def _is_open_address(value: str) -> bool:
    """Whether it is the address of a store without a user or a password."""
    found = re.match(_URL, value)
    if found is None or value.lower().startswith("http"):
        return False
    return "@" not in value and "?" not in value


def _is_dense(line: str) -> bool:
    """Whether a line of a longer value says much by itself, as one of a private key does."""
    return any(
        any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))
        for run in re.findall(_DENSE, line)
    )


def _escape(text: str) -> set[str]:
    import json

    single = text.replace("'", "'\\''")
    ansi = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return {
        json.dumps(text, ensure_ascii=False)[1:-1],
        json.dumps(text)[1:-1],
        re.sub(r"([\"\\$`])", r"\\\1", text),
        single,
        ansi,
    }


def _unquote(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text) if "%" in text else text

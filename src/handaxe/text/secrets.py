"""Names of environment variables whose values look like secrets."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

ENCODED_COPIES = ("DIRENV_DIFF", "__MISE_DIFF", "__MISE_SESSION")
"""Variables in which direnv and mise keep encoded copies of the values that they set."""

MAX_CHARS = 128
"""For a longer name its ending decides."""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_WORDS = _split_words(
    "PASS PASSWORD PASSWORDS PASSWD PASSWDS PASSCODE PASSPHRASE PASSPHRASES SECRET SECRETS TOKEN "
    "CREDENTIAL CREDENTIALS CRED CREDS AUTH AUTHORIZATION APIKEYS DSN COOKIES JWT JWTS JWK BEARER "
    "PEPPER TOTP MNEMONIC PSK P12 PFX KEYSTORE DBPASS SSHPASS USERPASS SMTPPASS MYSQLPASS FTPPASS "
    "ROOTPASS ADMINPASS PROXYPASS KEYPASS STOREPASS HTPASSWD"
)
_ONLY_LAST = _split_words("PAT COOKIE SALT SIGNATURE PIN OTP PEM")
"""These say so only at the end of a name, or before a number."""

_SECRET_ENDINGS = (
    "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS",
    "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY", "MASTERKEY", "SSHKEY",
    "SIGNINGKEY", "ENCRYPTIONKEY", "LICENSEKEY", "CONNECTIONSTRING", "PWD",
)  # fmt: skip
_KEYS = _split_words("KEY KEYS")
_HARMLESS_KEYS = _split_words(
    "PRIMARY FOREIGN SORT PARTITION CACHE ROW HOT COMPOSE AUTHORIZED KNOWN SHORTCUT MODIFIER REPEAT"
)
"""A key with one of these words opens nothing."""

_COUNTING = _split_words(
    "MAX MIN NUM N PER COUNT LIMIT BUDGET TOTAL INPUT OUTPUT CONTEXT THINKING PROMPT COMPLETION "
    "CACHED RESERVED DEFAULT SPECIAL STOP NEW"
)
"""With one of these words, `TOKENS` counts pieces of text."""

_ABOUT = _split_words(
    "FILE FILES FILENAME PATH PATHS DIR DIRECTORY DIRS HOME SOCK SOCKET COMMAND CMD PROGRAM HELPER "
    "BACKEND PROVIDER STORE MANAGER NAME NAMES TYPE KIND FORMAT ALGORITHM ALG METHOD MODE SCHEME "
    "ENABLED ENABLE DISABLED DISABLE REQUIRED OPTIONAL VERSION RELEASE URL URI ENDPOINT HOST PORT "
    "DOMAIN USER USERNAME EMAIL REGION ISSUER AUDIENCE SCOPE SCOPES HEADER TTL EXPIRY EXPIRES "
    "EXPIRATION LIFETIME TIMEOUT AGE INTERVAL ROTATION LENGTH LEN SIZE COUNT LIMIT BUDGET POLICY "
    "PREFIX SUFFIX ARN SECURE SAMESITE HTTPONLY RETRIES DELAY PERMISSIONS FINGERPRINT BITS LEEWAY"
)
"""Last words of names whose value describes a secret or its place, and does not hold it."""

_ELSEWHERE = _split_words("ORIG ORIGINAL LAST OLD INIT START PREV PREVIOUS CURRENT BUILD")
"""With one of these words, `PWD` is a directory."""

_STORE_URL = (
    r"(DATABASE|DB|REDIS|VALKEY|MONGO|MONGODB|POSTGRES|POSTGRESQL|PG|MYSQL|MARIADB|SQL|AMQP"
    r"|CLOUDAMQP|RABBITMQ|BROKER|ELASTICSEARCH|OPENSEARCH|CLICKHOUSE|COCKROACH|NATS|JDBC|SMTP|NEO4J"
    r"|MEMCACHED?|MEMCACHIER|CLOUDINARY|SQLALCHEMY|ORACLE|MSSQL|COUCHDB|INFLUXDB?|SNOWFLAKE|KV)"
    r"[A-Z0-9]*(_[A-Z0-9]+)*_?(URL|URI|URLS)(_[A-Z0-9]+)?"
)
"""Addresses of stores, which hold a user and a password as often as not."""
_STORE_PARTS = r".*_(HOST|PORT|NAME|USER)(_[A-Z0-9]+)?"

_LISTED_NAMES = {
    "SESSION": r"BW_SESSION|OP_SESSION_.+|AOC_SESSION",
    "CSC_LINK": r"CSC_LINK",
    "LICENSE": r"UNITY_LICENSE",
    "HEADERS": r"OTEL_EXPORTER_OTLP(_\w+)?_HEADERS|ANTHROPIC_CUSTOM_HEADERS",
    "URL": r"CI_REPOSITORY_URL|DIRECT_URL",
    "BACKEND": r"CELERY_RESULT_BACKEND",
    "CONN": r"AIRFLOW_CONN_.+|(.+_)?CONN(ECTION)?_?STR(ING)?S?(_.+)?|(.+CONNSTR)_.+"
    r"|(.+_)?(SQL_ALCHEMY|DB|DATABASE|REDIS)_CONN",
    "WEBHOOK": r"(.+_)?WEBHOOKS?(_URLS?)?",
    "KEY": r"(.+_)?ACCESS_?KEY(_ID)?(_[A-Z0-9]+)?",
    "_ID": r"(.+_)?(SECRET|TOKEN)_ID",
    "SEED": r"(.+_)?SEED_PHRASE",
    "RECOVERY": r"(.+_)?RECOVERY_CODES?",
    "PRIVATE": r"(.+_)?SSH_PRIVATE",
    "BUNDLE_": r"BUNDLE_[A-Z0-9]+(__[A-Z0-9]+)+",
    "CONFIG": r"KUBE_?CONFIG_(DATA|CONTENTS?|BASE64|B64)|DOCKER_?CONFIG_?JSON",
    "ACCOUNT": r"(.+_)?SERVICE_ACCOUNT_(JSON|BASE64|B64|DATA)|FIREBASE_SERVICE_ACCOUNT.*",
}
"""Names by what all of them hold: most variables need none of these patterns."""
_HARMLESS_NAMES = {
    "PWD": r"PWD|OLDPWD",
    "KEY": r"GPG_KEY|(.+_)?(PUBLIC|PUBLISHABLE)_KEY|(NEXT|NUXT|EXPO)_PUBLIC_.*_(ANON|SITE)_KEY",
    "PASS": r".*ASKPASS(_REQUIRE)?|PASSWORD_STORE_\w+",
    "SALT": r"SALT_MASTER",
}
_HINTS = (
    "KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "URL", "URI", "DSN", "COOKIE", "JW",
    "BEARER", "SALT", "PEPPER", "SIGNATURE", "MNEMONIC", "PSK", "P12", "PFX", "CONN", "WEBHOOK",
    "SESSION", "CSC_LINK", "LICENSE", "HEADERS", "BACKEND", "RECOVERY", "SEED", "PRIVATE",
    "BUNDLE_", "CONFIG", "ACCOUNT", "OTP",
)  # fmt: skip
"""A name without these, and without a counting last word, is not checked further."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value of a variable with this name is probably a secret."""
    name = name[-MAX_CHARS:]
    whole = name.upper()
    if not any(hint in whole for hint in _HINTS) and _ONLY_LAST.isdisjoint(whole.split("_")):
        return False
    parts = re.split(r"[^A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))
    words = [part.upper() for part in parts if part]
    upper = "_".join(words)
    if not words or _is_one_of(_HARMLESS_NAMES, upper):
        return False
    # `__` parts the levels of a name for some programs, so the name as it is counts too.
    if _is_one_of(_LISTED_NAMES, upper) or _is_one_of(_LISTED_NAMES, whole):
        return True
    is_address = "UR" in upper and re.search(_STORE_URL, upper)
    if is_address and not re.fullmatch(_STORE_PARTS, upper):
        return True
    if words[-1] in _ABOUT or words[-2:] in (["EXPIRES", "IN"], ["EXPIRES", "AT"]):
        return False
    return any(_is_secret_word(word, words) for word in words)


def _is_one_of(patterns: dict[str, str], name: str) -> bool:
    return any(part in name and re.fullmatch(pattern, name) for part, pattern in patterns.items())


def _is_secret_word(word: str, words: list[str]) -> bool:
    if word == "TOKENS":
        return words[-1] == word and len(words) > 1 and _COUNTING.isdisjoint(words)
    if word == "TOKEN":
        return "MAX" not in words and "PER" not in words
    if word in _KEYS:
        return words[-1] not in ("ID", "IDS") and _HARMLESS_KEYS.isdisjoint(words)
    if word == "PWD":
        return _ELSEWHERE.isdisjoint(words)
    if word in _ONLY_LAST:
        return words[-1] == word or words[-1].isdigit()
    return word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS)


def has_matching_pattern(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of `patterns`, in which `*` stands for any characters."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_SAMPLES = (".env", ".env.local", ".env.production", ".env.development", ".env.test", ".env.q7x")
_EXAMPLES = (".example", ".sample", ".template")


def is_env_file(name: str) -> bool:
    """Whether a file of this name usually holds secrets: `.env` and `.env.*`, not examples."""
    if not name.startswith(".") and name.isascii():
        return False
    folded = fold_name(name)
    return folded == ".env" or (folded.startswith(".env.") and not folded.endswith(_EXAMPLES))


def can_name_env_file(paths: str | bytes) -> bool:
    """Whether one of many joined paths may name such a file; faster than to look at each."""
    if not paths.isascii():
        return True
    return ".env" in paths.lower() if isinstance(paths, str) else b".env" in paths.lower()


def fold_name(name: str) -> str:
    """A name as the most forgiving file systems compare it."""
    if name.isascii():
        return name.lower()
    # Some file systems drop invisible characters and fold compatibility forms.
    import unicodedata

    plain = unicodedata.normalize("NFKC", name.casefold())
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").casefold()


def sample_env_files(pattern: str) -> list[str]:
    """Names of such files, as samples, that a glob fits; case is not looked at."""
    return [name for name in _SAMPLES if fnmatchcase(name, pattern.lower())]


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

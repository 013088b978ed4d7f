"""Names of environment variables whose values look like secrets."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

MAX_CHARS = 128
"""Of a longer name the end decides."""


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
"""As the last word: the value is about a secret, or says where it is, and does not hold it."""

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

_LISTED_NAMES = (
    r"BW_SESSION|OP_SESSION_.+|AOC_SESSION|CSC_LINK|UNITY_LICENSE|OTEL_EXPORTER_OTLP(_\w+)?_HEADERS"
    r"|ANTHROPIC_CUSTOM_HEADERS|CI_REPOSITORY_URL|CELERY_RESULT_BACKEND|AIRFLOW_CONN_.+|DIRECT_URL"
    r"|(.+_)?WEBHOOKS?(_URLS?)?|(.+_)?CONN(ECTION)?_?STR(ING)?S?(_.+)?|(.+CONNSTR)_.+"
    r"|(.+_)?(SQL_ALCHEMY|DB|DATABASE|REDIS)_CONN|(.+_)?ACCESS_?KEY(_ID)?(_[A-Z0-9]+)?"
    r"|(.+_)?(SECRET|TOKEN)_ID|(.+_)?SEED_PHRASE|(.+_)?RECOVERY_CODES?|(.+_)?SSH_PRIVATE"
    r"|BUNDLE_[A-Z0-9]+(__[A-Z0-9]+)+|KUBE_?CONFIG_(DATA|CONTENTS?|BASE64|B64)"
    r"|DOCKER_?CONFIG_?JSON|(.+_)?SERVICE_ACCOUNT_(JSON|BASE64|B64|DATA)|FIREBASE_SERVICE_ACCOUNT.*"
)
_HARMLESS_NAMES = (
    r"PWD|OLDPWD|GPG_KEY|.*ASKPASS(_REQUIRE)?|(.+_)?(PUBLIC|PUBLISHABLE)_KEY"
    r"|(NEXT|NUXT|EXPO)_PUBLIC_.*_(ANON|SITE)_KEY|PASSWORD_STORE_\w+|SALT_MASTER"
)
_HINTS = (
    "KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "URL", "URI", "DSN", "COOKIE", "JW",
    "BEARER", "SALT", "PEPPER", "SIGNATURE", "MNEMONIC", "PSK", "P12", "PFX", "CONN", "WEBHOOK",
    "SESSION", "CSC_LINK", "LICENSE", "HEADERS", "BACKEND", "RECOVERY", "SEED", "PRIVATE",
    "BUNDLE_", "CONFIG", "ACCOUNT", "OTP",
)  # fmt: skip
"""A name with none of these, and no word that counts at the end, is looked at no further."""


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
    if not words or re.fullmatch(_HARMLESS_NAMES, upper):
        return False
    # `__` parts the levels of a name for some programs, so the name as it is counts too.
    if re.fullmatch(_LISTED_NAMES, upper) or re.fullmatch(_LISTED_NAMES, whole):
        return True
    if re.search(_STORE_URL, upper) and not re.fullmatch(_STORE_PARTS, upper):
        return True
    if words[-1] in _ABOUT or words[-2:] in (["EXPIRES", "IN"], ["EXPIRES", "AT"]):
        return False
    return any(_is_secret_word(word, words) for word in words)


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

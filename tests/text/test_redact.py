"""Secret values replaced by the names of their variables: everywhere, and nothing else."""

import json

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handaxe.text.redact import Redactor
from handaxe.text.secrets import is_secret_value

TOKEN = "ghp_Zx81kQpLm2Zx81kQpLm2Zx81kQpLm2"
BASE64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN PRIVATE KEY-----\n{BASE64}\n{BASE64[::-1]}\nshort=\n-----END PRIVATE KEY-----\n"

# Few letters, so that values overlap; none of a marker, so that a marker completes no value.
letters = st.sampled_from('xyzXYZ0123456789/+=-_"\\\té\u4e2d')
values = st.text(letters, min_size=8, max_size=24).filter(is_secret_value)
texts = st.text(letters, max_size=40)


def make(**variables):
    return Redactor(variables)


def streamed(redactor, pieces):
    stream = redactor.open_stream()
    return b"".join([*map(stream.feed, pieces), stream.finish()])


def cut(data, places):
    ends = sorted(place % (len(data) + 1) for place in places)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


def test_a_value_is_replaced_by_the_name_of_its_variable():
    redactor = make(GITHUB_TOKEN=TOKEN)
    assert redactor.redact(f"a {TOKEN}{TOKEN} b") == (
        "a [redacted: GITHUB_TOKEN][redacted: GITHUB_TOKEN] b"
    )
    assert redactor.redact_bytes(b"\xff" + TOKEN.encode()) == b"\xff[redacted: GITHUB_TOKEN]"


@given(st.lists(values, min_size=1, max_size=4), texts, texts, st.lists(st.integers(0), max_size=6))
@settings(max_examples=40)
def test_no_secret_comes_through_wherever_the_stream_is_cut(secrets, before, after, places):
    redactor = Redactor({f"S{number}_KEY": value for number, value in enumerate(secrets)})
    text = before + after.join(secrets) + after
    shown = redactor.redact(text)
    assert not any(value in shown for value in secrets)
    # Pieces of any size give the same bytes as the whole.
    whole = redactor.redact_bytes(text.encode())
    assert whole == shown.encode()
    assert streamed(redactor, cut(text.encode(), places)) == whole
    assert streamed(redactor, [bytes([byte]) for byte in text.encode()]) == whole


@given(
    st.lists(values, min_size=1, max_size=4),
    st.binary(max_size=100) | texts.map(str.encode),
    st.lists(st.integers(0), max_size=6),
)
@settings(max_examples=40)
def test_what_holds_no_secret_comes_through_byte_for_byte(secrets, data, places):
    redactor = Redactor({f"S{number}_KEY": value for number, value in enumerate(secrets)})
    assume(not any(value.encode() in data for value in secrets))
    assert redactor.redact_bytes(data) == data
    assert streamed(redactor, cut(data, places)) == data


@given(st.integers(1, len(TOKEN) - 1))
def test_a_value_that_never_ends_is_given_out_at_the_end(size):
    redactor = make(GITHUB_TOKEN=TOKEN)
    begun = f"x{TOKEN[:size]}".encode()
    assert streamed(redactor, [begun]) == begun


def test_overlapping_values_and_values_inside_others_give_nothing_away():
    outer, inner, next_ = "abcd1234efgh5678", "1234efgh", "efgh5678WXYZ"
    redactor = make(A_KEY=outer, B_KEY=inner, C_KEY=next_)
    assert redactor.redact(f"{outer} {inner} {next_}") == (
        "[redacted: A_KEY] [redacted: B_KEY] [redacted: C_KEY]"
    )
    joined = f"x{inner}5678WXYZ".encode()
    assert streamed(redactor, [joined[:3], joined[3:11], joined[11:]]) == (
        b"x[redacted: B_KEY]5678WXYZ"
    )
    # The end of one value is the beginning of another: the first one counts in pieces too.
    assert streamed(redactor, [outer.encode(), b"WXYZ"]) == b"[redacted: A_KEY]WXYZ"


@pytest.mark.parametrize(
    "value",
    [
        "", "x", "true", "abc1", "1234567", "production", "development", "localhost", "password",
        "administrator", "postgres", "changeme", "12345678", "1700000000000", "127.0.0.1:8080",
        "localhost:5432", "aaaaaaaaaaaa", "********", "password123", "not-required", "sk-dummy-key",
        "postgres://postgres:postgres@localhost:5432/test", "redis://cache.internal:6379/0",
        "        ", "\n\n\n\n\n\n\n\n\n",
    ],
)  # fmt: skip
def test_ordinary_words_are_not_hidden(value):
    redactor = make(DB_PASSWORD=value)
    text = f"the {value} of production at localhost:5432 is true\n"
    assert redactor.redact(text) == text
    assert redactor.redact_bytes(text.encode()) == text.encode()


@pytest.mark.parametrize(
    "value",
    [
        TOKEN, "hunter2-but-longer", "correcthorsebatterystaple", "p@ssw0rd!", "AKIAIOSFODNN7EXAMPLE",
        "3f2a9c1e-8b7d-4e6f-9a0b-1c2d3e4f5a6b", "Пароль-длинный-1", "postgres://app:S3cr3t!x@db/app",
        "https://hooks.slack.com/services/T0AB/B0CD/abcDEF123",
    ],
)  # fmt: skip
def test_values_that_open_something_are_hidden(value):
    assert make(SLACK_WEBHOOK_URL=value).redact(f"<{value}>") == "<[redacted: SLACK_WEBHOOK_URL]>"


def test_the_password_of_an_address_is_hidden_by_itself_and_whatever_the_variable_is_called():
    redactor = make(PIP_INDEX_URL="https://me:S3cr3t%21Xyz@pypi.example/simple")
    assert redactor.redact("S3cr3t%21Xyz or S3cr3t!Xyz") == (
        "[redacted: PIP_INDEX_URL] or [redacted: PIP_INDEX_URL]"
    )
    assert redactor.redact("https://pypi.example/simple") == "https://pypi.example/simple"


def test_a_value_of_several_lines_is_hidden_whole_and_line_by_line():
    redactor = make(SSH_KEY=PEM)
    assert redactor.redact(f"a\n{PEM}b") == "a\n[redacted: SSH_KEY]b"
    numbered = redactor.redact(f"1\t-----BEGIN PRIVATE KEY-----\n2\t{BASE64}\n3\tshort=\n")
    assert numbered == "1\t-----BEGIN PRIVATE KEY-----\n2\t[redacted: SSH_KEY]\n3\tshort=\n"


@given(st.text(st.characters(codec="utf-8"), min_size=8, max_size=30).filter(is_secret_value))
@settings(max_examples=40)
def test_a_value_is_hidden_in_json_however_it_is_escaped(value):
    assume(value == value.strip())
    assume(value not in "[redacted: MY_KEY]")
    redactor = make(MY_KEY=value)
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert value not in redactor.redact(text)
        assert value not in json.loads(redactor.redact(text))


@given(values, texts)
@settings(max_examples=40)
def test_a_json_document_stays_one_and_loses_the_secret(value, text):
    redactor = make(MY_KEY=value)
    document = {"a": [text, f"{text}{value}"], value: {"n": 1.5, "b": None}}
    made = json.loads(redactor.redact_json(msgspec.json.encode(document)))
    assert value not in json.dumps(made, ensure_ascii=False)
    assert made["a"][0] == redactor.redact(text)


def test_a_secret_that_looks_like_the_end_of_an_escape_does_not_break_a_document():
    redactor = make(MY_KEY="n12345678xyz")
    document = msgspec.json.encode({"text": "line\n12345678xyz and n12345678xyz"})
    assert json.loads(redactor.redact_json(document)) == {
        "text": "line\n12345678xyz and [redacted: MY_KEY]"
    }


@pytest.mark.parametrize("value", ['q"uo\\te-Aa1', "tab\tAa1 bc", "dollar$`Aa1'x", "é-Umlaut-1"])
def test_a_value_is_hidden_as_shells_quote_it(value):
    redactor = make(MY_KEY=value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    for text in (f'declare -x MY_KEY="{escaped.replace("`", chr(92) + "`")}"', f"MY_KEY={value}"):
        assert "[redacted: MY_KEY]" in redactor.redact(text)


class Note(msgspec.Struct, frozen=True):
    text: str
    more: tuple[str, ...] = ()


def test_every_text_in_a_value_is_redacted_and_an_untouched_value_stays_the_same_object():
    redactor = make(MY_KEY=TOKEN)
    clean = {"a": [1, None, Note("x", ("y",))], "b": ("z",)}
    assert redactor.redact_value(clean) is clean
    dirty = {"a": [1, Note(TOKEN, ("y", TOKEN))], TOKEN: (TOKEN,)}
    mark = "[redacted: MY_KEY]"
    assert redactor.redact_value(dirty) == {"a": [1, Note(mark, ("y", mark))], mark: (mark,)}


def test_a_value_that_holds_itself_or_is_very_deep_is_visited_once():
    redactor = make(MY_KEY=TOKEN)
    loop: dict[str, object] = {"text": TOKEN}
    loop["self"] = loop
    shown = redactor.redact_value(loop)
    assert shown["text"] == "[redacted: MY_KEY]"
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert redactor.redact_value(deep) is deep


def test_later_variables_count_and_the_path_of_a_file_is_no_secret(tmp_path):
    place = tmp_path / "key-Aa1.json"
    place.touch()
    redactor = Redactor({"GOOGLE_APPLICATION_CREDENTIALS": str(place)}, is_file=lambda _: True)
    assert not redactor
    redactor.learn({"MY_KEY": TOKEN})
    redactor.learn({"MY_KEY": TOKEN[::-1]})
    assert redactor.redact(f"{TOKEN} {TOKEN[::-1]} {place}") == (
        f"[redacted: MY_KEY] [redacted: MY_KEY] {place}"
    )


def test_listed_variables_are_secret_whatever_they_are_called_but_patterns_are_not_names():
    variables = {"MY_THING": "aB3-something", "AWS_REGION": "eu-central-1x"}
    redactor = Redactor(variables, ["MY_THING", "AWS_*"])
    assert redactor.redact("aB3-something in eu-central-1x") == (
        "[redacted: MY_THING] in eu-central-1x"
    )


@pytest.mark.parametrize("value", ["half-\ud800-Aa1bc", "raw-\udcff\udcfe-Aa1bc", "nul\0-Aa1bc-x"])
def test_values_that_are_no_text_do_no_harm(value):
    redactor = make(MY_KEY=value)
    assert redactor.redact(f"<{value}>") == "<[redacted: MY_KEY]>"
    raw = value.encode("utf-8", "surrogateescape" if "\udcff" in value else "surrogatepass")
    assert redactor.redact_bytes(raw) == b"[redacted: MY_KEY]"
    assert redactor.redact_bytes(b"\xed\xa0\x80 \xff") == b"\xed\xa0\x80 \xff"


def test_a_name_is_fit_for_a_marker_whatever_it_holds():
    redactor = Redactor({'X"\n[KEY_TOKEN': TOKEN})
    assert redactor.redact(TOKEN) == "[redacted: X___KEY_TOKEN]"

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.chunks import LONG
from handaxe.text.encoding import (
    DecodedText,
    Format,
    NotText,
    UnencodableCharacter,
    decode,
    encode,
    encode_part,
    has_surrogates,
    is_empty,
    sniff,
)

MARKS = {
    "utf-8": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\0\0",
    "utf-32-be": b"\0\0\xfe\xff",
}


@pytest.mark.parametrize("encoding", MARKS)
@pytest.mark.parametrize("text", ["", "a", "é\r\nü\n", "日本\n", "\U0001f600", "a\0b"])
def test_a_byte_order_mark_names_the_encoding(encoding: str, text: str) -> None:
    data = MARKS[encoding] + text.encode(encoding)
    if encoding == "utf-8" and "\0" in text:
        with pytest.raises(NotText):
            decode(data)
        return
    decoded = decode(data)
    assert decoded == DecodedText(encoding=encoding, bom=MARKS[encoding], text=text)
    assert encode(decoded.text, decoded) == data


def test_plain_bytes_are_utf8_without_a_mark() -> None:
    assert decode(b"x = 1\n") == DecodedText(encoding="utf-8", bom=b"", text="x = 1\n")
    assert decode("naïve ☃".encode()).text == "naïve ☃"
    assert decode(b"") == DecodedText()


def test_line_endings_are_left_alone() -> None:
    assert decode(b"a\r\nb\nc\rd").text == "a\r\nb\nc\rd"


@pytest.mark.parametrize(
    "data",
    [
        b"a\0b",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x01\x02\x03\x04\x05\x06\xff",
        "text".encode("utf-16-le"),
        b"\xff\xfea\0b",
    ],
)
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(NotText):
        sniff(data)
    with pytest.raises(NotText):
        decode(data)


@pytest.mark.parametrize("data", [b"\x1b[31mred\x1b[0m\x0c\n", b"\x01\x02\x7f", b"\x01\xc3\xa9"])
def test_control_characters_other_than_nul_are_text_where_it_is_utf8(data: bytes) -> None:
    assert decode(data) == DecodedText(text=data.decode())


def test_a_wide_mark_before_broken_text_is_no_mark() -> None:
    assert decode(b"\xff\xfeabc").text == "ÿþabc"


def test_the_first_character_that_does_not_fit_is_named() -> None:
    with pytest.raises(UnencodableCharacter) as caught:
        encode("caf\u00e9 \u4e2d\u6587", Format("windows-1252"))
    assert (caught.value.character, caught.value.position) == ("\u4e2d", 5)
    assert caught.value.encoding == "windows-1252"
    assert "U+4E2D" in str(caught.value)


def test_a_look_alike_is_not_written_in_place_of_a_character() -> None:
    with pytest.raises(UnencodableCharacter) as caught:
        encode("10 \u00a5", Format("shift_jis"))
    assert caught.value.character == "\u00a5"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be", "gbk", "windows-1252"])
def test_half_a_surrogate_pair_cannot_be_encoded(encoding: str) -> None:
    with pytest.raises(UnencodableCharacter):
        encode_part("a\ud800", encoding)
    assert has_surrogates("a\ud800")
    assert not has_surrogates("a\U0001f600")


@pytest.mark.parametrize("content", [b"", *MARKS.values()])
def test_a_file_of_only_a_mark_is_empty(content: bytes) -> None:
    assert is_empty(content)
    assert not is_empty(content + "\n".encode("utf-16-le"))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_come_back_unchanged(data: bytes) -> None:
    try:
        decoded = decode(data)
    except NotText:
        return
    assert encode(decoded.text, decoded) == data
    assert sniff(data) == Format(decoded.encoding, decoded.bom)


@given(st.binary(max_size=300).map(lambda data: data.replace(b"\0", b" ") + b"plain text " * 60))
def test_text_without_nul_always_decodes(data: bytes) -> None:
    decoded = decode(data)
    assert encode(decoded.text, decoded) == data


@given(st.text(), st.sampled_from([*MARKS, "gbk", "big5", "euc-jp", "koi8-r", "iso-8859-1"]))
def test_encoding_gives_the_same_text_back_or_says_why_not(text: str, encoding: str) -> None:
    refusal = None
    try:
        data = encode_part(text, encoding)
    except UnencodableCharacter as error:
        data, refusal = b"", error
    assert refusal is None or text[refusal.position] == refusal.character
    assert refusal is not None or data.decode(encoding) == text


@pytest.mark.parametrize("encoding", MARKS)
@pytest.mark.parametrize("shift", range(4))
def test_a_long_text_comes_back_wherever_its_chunks_end(encoding: str, shift: int) -> None:
    text = "é" + "x" * shift + "aé€漢😀\r\n" * (LONG // 6)
    data = MARKS[encoding] + text.encode(encoding)
    decoded = decode(data)
    assert (decoded.encoding, decoded.bom) == (encoding, MARKS[encoding])
    # A failure that shows both would never end.
    is_same = decoded.text == text
    assert is_same
    assert encoding != "utf-8" or decode(text.encode()).text == text

import pytest

from handaxe.text.encoding import decode, encode

SAMPLES = {
    ("gbk", "gb18030"): [
        "# 注释",
        "# 读取配置文件\nx = 1\n",
        "print('你好')",
        "名称=测试\r\n",
        "这是一个较长的测试文件，用来检查编码检测。\n第二行也有内容。\n",
    ],
    ("big5",): ["繁體中文測試檔案", "# 讀取設定檔\nx = 1\n", "print('歡迎使用本系統')\n"],
    ("shift_jis", "euc-jp"): [
        "日本語のテキストです。",
        "# 設定を読み込む\nx = 1\n",
        "print('こんにちは')",
        "テスト",
    ],
    ("euc-kr",): ["한국어 텍스트입니다.", "# 설정 파일을 읽는다\nx = 1\n", "print('안녕하세요')"],
    ("koi8-r", "windows-1251"): ["Привет мир", "# Комментарий\nx = 1\n", "print('Привет')\n"],
    ("windows-1252",): [
        "café",
        "x='é'",
        "# Größe ändern\nx = 1\n",
        "print('¡Hola, señor!')",
        "// données à récupérer\nint x;\n",
        "price = '10 €'",
        "“quoted” text – with dashes",
        "© 2020 Müller GmbH",
        "Åse får nytt hus på øya, ærlig talt.\n",
        "don’t",
        "naïve café résumé — déjà vu",
    ],
}
CASES = [(name, text) for names, texts in SAMPLES.items() for name in names for text in texts]


@pytest.mark.parametrize(("encoding", "text"), CASES)
def test_a_few_words_are_enough_to_tell_the_encoding(encoding: str, text: str) -> None:
    data = text.encode(encoding)
    decoded = decode(data)
    assert decoded.text == text
    assert encode(text, decoded) == data


def test_a_file_grows_no_wider_than_its_encoding_was() -> None:
    assert decode("# 读取配置文件\n".encode("gb18030")).encoding == "gbk"
    assert decode("# 读取配置文件 \U00020000\n".encode("gb18030")).encoding == "gb18030"
    assert decode("設定を読み込みます\n".encode("shift_jis")).encoding == "shift_jis"
    assert decode("設定①を読み込みます\n".encode("cp932")).encoding == "cp932"
    assert decode("한국어 텍스트입니다\n".encode("cp949")).encoding == "euc-kr"


def test_a_sign_far_behind_the_sample_still_counts() -> None:
    text = "x = 1  # café\n" * 10_000
    data = text.encode("windows-1252") + b"\x81\x8d"
    decoded = decode(data)
    assert decoded.encoding == "iso-8859-1"
    assert encode(decoded.text, decoded) == data


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("windows-1250", "Zażółć gęślą jaźń. Książę dążył, żeby wszystkie źródła były święte.\n"),
        ("windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy a běžel přes pole.\n"),
        ("windows-1253", "Καλημέρα κόσμε, αυτό είναι ένα δοκιμαστικό αρχείο κειμένου.\n"),
        ("windows-1254", "Bu dosya Türkçe yazılmıştır, çünkü şöyle gerekiyordu.\n"),
        ("windows-1255", "שלום עולם, זהו קובץ בדיקה.\n"),
        ("windows-1256", "هذا ملف نصي للاختبار باللغة العربية.\n"),
        ("windows-1257", "Šis failas parašytas lietuvių kalba, jame yra visų raidžių.\n"),
        ("windows-1251", "Ово је датотека за проверу, њен текст је на српском.\n"),
        ("koi8-u", "Це перевірка файлу українською мовою, її текст короткий.\n"),
        ("iso8859-5", "Функция читает файл настроек.\n"),
        ("cp866", "Функция читает файл настроек.\n"),
        ("cp874", "ไฟล์นี้เขียนเป็นภาษาไทย\n"),
        ("windows-1252", "Þetta er stutt skrá á íslensku, með öllum séríslenskum stöfum.\n"),
        ("windows-1252", "Aquesta és la llista d’opcions del menú: «\xa0àéïóü\xa0».\n"),
    ],
)
def test_a_sentence_in_a_rarer_encoding_is_told(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)).text == text

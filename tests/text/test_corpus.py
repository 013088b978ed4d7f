import base64
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CORPUS = Path(__file__).parents[2] / "corpus"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"corpus_{name}", CORPUS / f"{name}.py")
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


runner = module("run")


def test_every_case_of_the_edit_corpus_ends_as_it_should() -> None:
    report = runner.run(runner.handaxe_engine)
    assert report["failures"] == []
    assert report["total"]["cases"] >= 300
    assert report["total"]["cases"] == report["total"]["landed"] + report["total"]["refused"]


def test_a_hundred_tab_files_keep_their_tabs() -> None:
    report = runner.run(runner.handaxe_engine)
    assert report["families"]["tab_files"]["landed"] >= 100


@pytest.mark.proves("FT-18", "FT-17", "FT-19")
def test_every_case_that_a_format_can_say_ends_as_it_should(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(CORPUS))
    formats = module("formats")
    report = formats.measure()
    assert {name: row["failures"] for name, row in report.items()} == {
        "replace": [], "multi": [], "patch": [], "lines": [],
    }  # fmt: skip
    assert report["replace"]["cases"] == report["multi"]["cases"]
    # Parts of lines and line endings alone are all that a patch cannot say.
    assert report["patch"]["not_expressible"] == 6
    assert report["patch"]["landed"] >= 420
    # Of what has to land only a change of a line ending cannot be said with tagged lines; the rest
    # are refusals for a text that is nowhere, or in two places, which no line number is.
    assert report["lines"]["landed"] == report["replace"]["landed"] - 1
    assert report["lines"]["tokens_per_read"] > report["replace"]["tokens_per_read"]
    monkeypatch.setattr(sys, "argv", ["formats.py"])
    assert formats.main() == 0
    assert "tokens_per_call" in capsys.readouterr().out


def test_case_ids_are_unique_and_every_case_says_what_it_shows() -> None:
    cases = list(runner.load())
    assert len({(case["family"], case["id"]) for case in cases}) == len(cases)
    assert all(case["summary"] for case in cases)


def test_the_generated_cases_are_those_the_generator_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = module("generate")
    (tmp_path / "edit").mkdir()
    (tmp_path / "snippets.toml").write_bytes((CORPUS / "snippets.toml").read_bytes())
    monkeypatch.setattr(generator, "HERE", tmp_path)
    generator.main()
    for path in (tmp_path / "edit").iterdir():
        assert path.read_bytes() == (CORPUS / "edit" / path.name).read_bytes(), path.name


def test_an_engine_behind_a_command_is_measured_the_same_way() -> None:
    engine = runner.CommandEngine(f"{sys.executable} {CORPUS / 'plain_replace.py'}")
    report = runner.run(engine)
    engine.close()
    # Exact replacement alone misses most of the corpus and breaks CRLF files without noticing.
    assert report["families"]["tab_files"]["missed"] == 100
    assert report["families"]["exact"]["landed"] == 26
    assert report["total"]["wrong_text"] > 0


@pytest.mark.parametrize(
    ("got", "verdict"),
    [
        ({"after_base64": "one\nTWO\nthree\n", "matched_with": "exact"}, "landed"),
        ({"after_base64": "one\nTWO\nthree\n"}, "landed"),
        ({"after_base64": "one\nTWO\nthree\n", "matched_with": "quotes"}, "wrong_class"),
        ({"after_base64": "one\nToo\nthree\n"}, "wrong_text"),
        ({"after_base64": "one\nTWO\nthree"}, "outside_changed"),
        ({"after_base64": "ONE\ntwo\nthree\n"}, "wrong_place"),
        ({"code": "edit.no_match"}, "missed"),
    ],
)
def test_the_runner_tells_failures_apart(got: dict[str, str], verdict: str) -> None:
    case = {
        "before": b"one\ntwo\nthree\n",
        "expect": {"after": "one\nTWO\nthree\n", "matched_with": "exact"},
    }
    if "after_base64" in got:
        got = got | {"after_base64": base64.b64encode(got["after_base64"].encode()).decode()}
    assert runner.judge(case, got) == verdict


def test_an_edit_that_had_to_be_refused_is_in_the_wrong_place() -> None:
    case = {"before": b"aa", "expect": {"code": "edit.many_matches"}}
    assert runner.judge(case, {"after_base64": base64.b64encode(b"ba").decode()}) == "wrong_place"
    assert runner.judge(case, {"code": "edit.no_match"}) == "wrong_code"
    assert runner.judge(case, {"code": "edit.many_matches"}) == "refused"


def test_the_report_is_json_and_the_exit_code_says_whether_it_is_perfect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--json"])
    assert runner.main() == 0
    assert json.loads(capsys.readouterr().out)["failures"] == []
    monkeypatch.setattr(runner, "handaxe_engine", lambda _: {"code": "edit.no_match"})
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert runner.main() == 1
    assert "missed" in capsys.readouterr().out


def test_the_table_of_formats_is_what_the_known_facts_make() -> None:
    table = module("table")
    assert table.TABLE.read_text("utf-8") == table.written(table.known())


def measured(**landed: int) -> dict[str, Any]:
    rows = {
        name: {"tasks": 20, "landed": landed.get(name, 0), "refused": 0, "wrong_place": 0,
               "tokens_in": 100.0, "tokens_out": 10.0 + len(name)}
        for name in ("replace", "multi", "patch", "lines")
    }  # fmt: skip
    return {"model": "Some[1]*", "formats": rows}


def test_a_measurement_decides_by_what_landed_then_by_tokens() -> None:
    table = module("table")
    assert table.best(measured(replace=3, lines=4)) == "lines"
    assert table.best(measured(replace=4, multi=4, lines=4)) == "multi"
    [entry] = table.profiles({"measured": [measured(patch=7)]})
    assert entry["pattern"] == "some[[]1][*]"
    assert entry["source"] == "measured: 7 of 20 tasks landed, most of all formats"


def test_a_measurement_that_says_too_little_decides_nothing() -> None:
    table = module("table")
    assert table.best(measured()) is None
    few = measured(patch=7)
    few["formats"]["lines"]["tasks"] = 19
    assert table.best(few) is None
    wrong = measured(patch=7)
    wrong["formats"]["patch"]["wrong_place"] = 1
    assert table.best(wrong) is None
    missing = measured(patch=7)
    del missing["formats"]["lines"]
    assert table.profiles({"measured": [missing]}) == []

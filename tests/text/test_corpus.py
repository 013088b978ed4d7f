import base64
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

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


@pytest.mark.proves("FT-18", "FT-17")
def test_every_case_that_a_format_can_say_ends_as_it_should(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(CORPUS))
    formats = module("formats")
    report = formats.measure()
    assert {name: row["failures"] for name, row in report.items()} == {
        "replace": [], "multi": [], "patch": [],
    }  # fmt: skip
    assert report["replace"]["cases"] == report["multi"]["cases"]
    # Parts of lines and line endings alone are all that a patch cannot say.
    assert report["patch"]["not_expressible"] == 6
    assert report["patch"]["landed"] >= 420
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

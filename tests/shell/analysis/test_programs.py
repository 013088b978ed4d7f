"""A sample of what the program tables allow, run for real; all of it is a long check."""

from __future__ import annotations

import random
import shutil

import pytest
from program_recorder import Recorder, read_trace
from program_runs import all_runs, execute, run_all

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
WAITING = {"tail", "sleep", "top", "vmstat", "free", "pip", "pip3"}


@needs_git
def test_a_sample_of_the_tables_changes_nothing_runs_nothing_and_connects_nowhere(tmp_path):
    chosen = random.Random(4)
    runs = [
        run for run in all_runs(1) if run.words[0] not in WAITING and "--version" not in run.words
    ]
    use_strace = shutil.which("strace") is not None
    report = run_all(
        tmp_path, chosen.sample(runs, 150), use_strace=use_strace, chosen=chosen, limit=2
    )
    assert report.wrong == []
    assert report.counts["run"] > 60


@needs_git
def test_the_recorder_notices_a_file_that_is_made_changed_or_removed(tmp_path):
    recorder = Recorder(tmp_path)
    assert recorder.find_changes() == []
    for words, place in (
        (["touch", "made.txt"], "work/made.txt"),
        (["sh", "-c", "echo x >> a.txt"], "work/a.txt"),
        (["rm", "b.txt"], "work/b.txt"),
        (["sh", "-c", "echo x > ../outside/canary.txt"], "outside/canary.txt"),
        (["sh", "-c", "echo x > ~/.cache"], "home/.cache"),
    ):
        execute(words, recorder)
        assert place in recorder.find_changes()


@needs_git
@needs_strace
@pytest.mark.parametrize(
    ("words", "texts", "event"),
    [
        (["sh", "-c", "/bin/true; :"], [], "ran /bin/true"),
        (["sh", "-c", "echo x > out"], [], "opened out for writing"),
        (["sh", "-c", "mkdir_() { cd .; }; mkdir d3"], [], "ran "),
        (["mkdir", "d3"], [], "called mkdir"),
        (["cat", "7"], ["7"], "opened '7', which the table takes for text"),
        (["bash", "-c", "echo > /dev/udp/127.0.0.1/9"], [], "called connect"),
    ],
)
def test_the_recorder_notices_what_system_calls_do(words, texts, event, tmp_path):
    recorder = Recorder(tmp_path)
    trace = tmp_path / "trace"
    execute([*recorder.strace(trace), *words], recorder)
    assert [found for found in read_trace(trace, words[0], texts) if found.startswith(event)]


@needs_git
@needs_strace
def test_the_recorder_lets_a_program_look(tmp_path):
    recorder = Recorder(tmp_path)
    trace = tmp_path / "trace"
    for words in (
        ["cat", "a.txt"],
        ["git", "status"],
        ["ls", "-la"],
        ["sh", "-c", "echo > /dev/null"],
    ):
        execute([*recorder.strace(trace), *words], recorder)
        assert read_trace(trace, words[0], []) == []
        assert recorder.find_changes() == []

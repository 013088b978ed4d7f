"""Finding processes by the mark in their environment, whatever they are just doing."""

import os
import subprocess
import time

from handaxe.process.process_tags import kill_tagged


def test_a_process_is_found_while_the_system_loads_its_program(tmp_path):
    # While `execve` runs, a process has no environment: this one spends most of its time there.
    script = tmp_path / "again.sh"
    script.write_text(f"exec sh {script}\n")
    for number in range(100):
        mark = f"test.{os.getpid()}.{number}."
        environment = {**os.environ, "HANDAXE_TEST_MARK": mark}
        process = subprocess.Popen(["sh", str(script)], env=environment, start_new_session=True)
        try:
            time.sleep(number / 20_000)
            assert kill_tagged("HANDAXE_TEST_MARK", mark, since=process.pid)
        finally:
            process.kill()
            process.wait()


def test_a_process_without_an_environment_is_passed_over():
    process = subprocess.Popen(["sleep", "600"], env={})
    try:
        assert kill_tagged("HANDAXE_TEST_MARK", "test.", since=process.pid) == 0
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()

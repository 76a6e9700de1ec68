#!/usr/bin/python3
"""Programs that start others are ended with all that they have started, and nobody else is."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

COMMON = os.path.abspath("benchmarks/common")
sys.path.insert(0, COMMON)
import processes  # noqa: E402

LONG_S = 60  # longer than any of these takes
# A process of a session of its own, which has our output, lets SIGTERM pass, and writes its id into the file $1. Who
# starts it goes on once that is written.
STRAY = """
mkfifo "$1.ready"
setsid sh -c 'trap "" TERM; echo $$ >"$0"; echo >"$0.ready"; while :; do sleep 1000; done' "$1" &
read -r _ <"$1.ready"
"""


class ProcessesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "pid")

    def tearDown(self):
        self.folder.cleanup()

    def run_script(self, script, limit_s=LONG_S, **options):
        return processes.run(["sh", "-c", script, "sh", self.path], limit_s, **options)

    def read_pid(self):
        with open(self.path, encoding="utf-8") as file:
            return int(file.read())

    def assert_gone(self, pid):
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    def test_output_errors_and_code_are_told_apart(self):
        ended = self.run_script("echo out; echo wrong >&2; exit 3")
        self.assertEqual((ended.code, ended.output, ended.errors), (3, "out\n", "wrong\n"))

    def test_a_signal_is_a_negative_code(self):
        self.assertEqual(self.run_script("kill -SEGV $$").code, -signal.SIGSEGV)

    def test_environment_and_cores_are_those_that_are_given(self):
        core = min(os.sched_getaffinity(0))
        ended = self.run_script('echo "$WORD"; taskset -pc $$', environment={**os.environ, "WORD": "x"}, cores=[core])
        self.assertEqual(ended.output.splitlines()[0], "x")
        self.assertTrue(ended.output.rstrip().endswith(f" {core}"), ended.output)

    def test_what_a_program_leaves_behind_is_ended_and_not_waited_for(self):
        ended = self.run_script(STRAY + "exit 5")
        self.assertEqual(ended.code, 5)
        self.assert_gone(self.read_pid())

    def test_a_program_whose_time_is_over_is_ended_with_its_children(self):
        ended = self.run_script(STRAY + "echo before; wait", limit_s=1)
        self.assertIsNone(ended.code)
        self.assertEqual(ended.output, "before\n")
        self.assert_gone(self.read_pid())

    def test_a_launcher_is_asked_first(self):
        ended = self.run_script("trap 'echo cleaned; exit 0' TERM; while :; do sleep 1000 & wait; done", limit_s=1)
        self.assertIsNone(ended.code)
        self.assertEqual(ended.output, "cleaned\n")

    def test_children_from_before_are_spared(self):
        with subprocess.Popen(["sleep", "1000"]) as other:
            try:
                self.run_script(STRAY + "exit 0")
                self.assertIsNone(other.poll())
            finally:
                other.kill()

    def test_whoever_is_terminated_ends_what_it_runs(self):
        script = (f"import sys; sys.path.insert(0, {COMMON!r}); import processes; "
                  f"processes.run(['sh', '-c', {STRAY + 'cat $1.begun; wait'!r}, 'sh', {self.path!r}], {LONG_S})")
        os.mkfifo(self.path + ".begun")
        with subprocess.Popen([sys.executable, "-c", script]) as runner:
            with open(self.path + ".begun", "w", encoding="utf-8"):  # waits until somebody reads it
                pass
            runner.terminate()
            self.assertEqual(runner.wait(), 128 + signal.SIGTERM)
        self.assert_gone(self.read_pid())


if __name__ == "__main__":
    unittest.main()

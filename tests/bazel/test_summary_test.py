#!/usr/bin/python3
"""What counts as passed, failed and skipped in the last line of `./dev test`."""

import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, "bazel")
import test_summary  # noqa: E402


class TestSummaryTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.events = []

    def tearDown(self):
        self.directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def add(self, kind, event_id, **event):
        self.events.append({"id": {kind: event_id}, **event})

    def add_target(self, label, kind="cc_test rule", built=True, tags=()):
        self.add("targetConfigured", {"label": label},
                 configured={"targetKind": kind, "tag": list(tags)})
        self.add("targetCompleted", {"label": label}, completed={"success": True} if built else {})

    def add_verdict(self, label, verdict, cases):
        xml = self.path(label.strip("/").replace(":", "_") + ".xml")
        with open(xml, "w", encoding="utf-8") as file:
            file.write("<testsuites><testsuite>%s</testsuite></testsuites>" % cases)
        self.add("testResult", {"label": label},
                 testResult={"testActionOutput": [{"name": "test.xml", "uri": "file://" + xml}]})
        self.add("testSummary", {"label": label}, testSummary={"overallStatus": verdict})

    def sum_up(self, exit_code=0, **finished):
        """The lines printed for the events so far."""
        self.add("buildFinished", {}, finished={"exitCode": {"code": exit_code}, **finished})
        with open(self.path("events"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in self.events)
        return self.run_main("run=" + self.path("events"))

    def run_main(self, *arguments):
        output = io.StringIO()
        sys.argv = ["test_summary.py", *arguments]
        with contextlib.redirect_stdout(output):
            self.code = test_summary.main()
        return output.getvalue().splitlines()

    def test_counts_cases(self):
        self.add_target("//a:x_test")
        self.add_verdict("//a:x_test", "PASSED", '<testcase name="A"/><testcase name="B"/>')
        self.assertEqual(self.sum_up(), ["2 passed, 0 failed"])
        self.assertEqual(self.code, 0)

    def test_names_failures(self):
        self.add_target("//a:x_test")
        self.add_verdict("//a:x_test", "FAILED",
                         '<testcase classname="X" name="A"/>'
                         '<testcase classname="X" name="B"><failure/></testcase>'
                         '<testcase name="C"><failure message="x.cc:3&#x0A;is  wrong"/>'
                         '<failure message="and more"/></testcase>')
        self.assertEqual(self.sum_up(3), ["FAILED  run: //a:x_test X.B",
                                          "FAILED  run: //a:x_test C: x.cc:3 is wrong",
                                          "1 passed, 2 failed"])
        self.assertEqual(self.code, 1)

    def test_says_where_the_time_went(self):
        self.add("started", {}, started={"startTimeMillis": "60000"})
        actions = [("Compiling a.cc", 50), ("Precompiling a.h", 10), ("Testing //a:x_test", 36),
                   ("Creating a", 4)]
        with gzip.open(self.path("events.profile.gz"), "wt", encoding="utf-8") as file:
            json.dump({"traceEvents": [{"cat": "action processing", "name": name, "dur": time}
                                       for name, time in actions] +
                                      [{"cat": "gc notification", "name": "gc", "dur": 900}]}, file)
        self.assertEqual(
            self.sum_up(finishTimeMillis="150000"),
            ["time: run 1.5 min (compiling 60 %, running 36 %, other 4 %); 1.5 min in all",
             "0 passed, 0 failed"])

    def test_adds_the_time_of_the_build_before(self):
        self.add("started", {}, started={"startTimeMillis": "60000"})
        for name, action in (("events", "Testing //a:x_test"), ("events.build", "Compiling a.cc")):
            with gzip.open(self.path(name + ".profile.gz"), "wt", encoding="utf-8") as file:
                json.dump({"traceEvents": [
                    {"cat": "action processing", "name": action, "dur": 10}]}, file)
        with open(self.path("events.build"), "w", encoding="utf-8") as file:
            for kind, time in (("started", {"startTimeMillis": "1000"}),
                               ("buildFinished", {"finishTimeMillis": "61000"})):
                word = "started" if kind == "started" else "finished"
                file.write(json.dumps({"id": {kind: {}}, word: time}) + "\n")
        self.assertEqual(
            self.sum_up(finishTimeMillis="90000"),
            ["time: run 1.5 min (compiling 50 %, running 50 %); 1.5 min in all",
             "0 passed, 0 failed"])

    def test_gives_the_reason_of_a_skip(self):
        self.add_target("//a:x_test")
        self.add_verdict("//a:x_test", "PASSED",
                         '<testcase name="A" result="skipped">'
                         '<skipped message="x.cc:3&#x0A;needs a GPU"/></testcase>'
                         '<testcase name="B" status="notrun"/>'
                         '<testcase name="C" result="skipped">'
                         '<skipped message="x.cc:9&#x0A;needs a GPU"/></testcase>')
        self.assertEqual(self.sum_up(), ["SKIPPED run: //a:x_test A and 1 more: needs a GPU",
                                         "SKIPPED run: //a:x_test B: disabled",
                                         "0 passed, 0 failed, 3 skipped"])

    def test_death_after_the_last_case_fails(self):
        self.add_target("//a:x_test")
        self.add_verdict("//a:x_test", "FAILED", '<testcase name="A"/>')
        self.assertEqual(self.sum_up(3), ["FAILED  run: //a:x_test FAILED", "1 passed, 1 failed"])

    def test_what_is_not_built_or_not_run_fails(self):
        self.add_target("//a:library", kind="cc_library rule", built=False)
        self.add_target("//a:x_test", built=False)
        self.add_target("//a:y_test")
        self.assertEqual(self.sum_up(1), ["FAILED  run: //a:library was not built",
                                          "FAILED  run: //a:x_test was not built",
                                          "FAILED  run: //a:y_test was not run",
                                          "0 passed, 3 failed"])

    def test_excluded_tags_are_not_missed(self):
        self.add("optionsParsed", {},
                 optionsParsed={"cmdLine": ["--test_tag_filters=-stress,-no-tsan"]})
        self.add_target("//a:x_test", tags=["stress"])
        self.add_target("//a:y_test", tags=["no-tsan"])
        self.add_target("//a:z_test", tags=["fault"])
        self.assertEqual(self.sum_up(), ["FAILED  run: //a:z_test was not run",
                                         "0 passed, 1 failed"])

    def test_a_pattern_without_targets_fails(self):
        self.add("pattern", {"pattern": ["//b/..."]}, aborted={"description": "no targets"})
        self.assertEqual(self.sum_up(1), ["FAILED  run: //b/... no targets", "0 passed, 1 failed"])

    def test_a_failure_of_bazel_itself_fails(self):
        self.assertEqual(self.sum_up(37), ["FAILED  run: Bazel ended with code 37",
                                           "0 passed, 1 failed"])
        self.assertEqual(self.run_main("run=" + self.path("none")),
                         ["FAILED  run: Bazel did not run", "0 passed, 1 failed"])


if __name__ == "__main__":
    unittest.main()

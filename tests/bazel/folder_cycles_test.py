#!/usr/bin/python3
"""Which folders `./dev lint` takes for including each other."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("bazel"))
import folder_cycles  # noqa: E402


class FolderCyclesTest(unittest.TestCase):
    def lines(self, files):
        """What is printed for files {path: the paths that it includes}."""
        home = os.getcwd()
        output = io.StringIO()
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            try:
                for path, targets in files.items():
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w", encoding="utf-8") as file:
                        file.writelines('#include "%s"\n' % target for target in targets)
                sys.argv = ["folder_cycles.py", *files]
                with contextlib.redirect_stdout(output):
                    folder_cycles.main()
            finally:
                os.chdir(home)
        return output.getvalue().splitlines()

    def test_one_direction_is_none(self):
        self.assertEqual(self.lines({"a/x.h": ["b/y.h", "a/z.h"], "a/z.h": [], "b/y.h": ["c/w.h"],
                                     "c/w.h": []}), [])

    def test_two_folders(self):
        self.assertEqual(self.lines({"a/x.h": ["b/y.h"], "a/z.h": [], "b/y.h": [],
                                     "b/w.cc": ["a/z.h"]}),
                         ["a, b include each other:", "  a/x.h includes b/y.h",
                          "  b/w.cc includes a/z.h"])

    def test_by_way_of_others_and_no_further(self):
        self.assertEqual(self.lines({"a/x.h": ["b/y.h"], "b/y.h": ["c/z.h"], "c/z.h": ["a/x.h"],
                                     "d/top.cc": ["a/x.h"]})[0], "a, b, c include each other:")

    def test_tests_may_be_included_by_nobody(self):
        self.assertEqual(self.lines({"a/x.h": ["tests/y.h"], "tests/y.h": ["a/x.h"]}), [])


if __name__ == "__main__":
    unittest.main()

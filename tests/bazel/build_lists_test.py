#!/usr/bin/python3
"""How lists stand in BUILD files."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("bazel"))
import build_lists  # noqa: E402


class BuildListsTest(unittest.TestCase):
    def test_what_fits_stands_on_one_line(self):
        self.assertEqual(build_lists.formatted('a(\n    deps = [\n        "//b",\n        "//c",\n    ],\n)\n'),
                         'a(\n    deps = ["//b", "//c"],\n)\n')

    def test_what_does_not_fit_fills_lines(self):
        names = ["name_%02d" % number for number in range(30)]
        wanted = ('a(\n    deps = [\n        ' + " ".join('"%s",' % name for name in names[:8]) + "\n        " +
                  " ".join('"%s",' % name for name in names[8:16]) + "\n        " +
                  " ".join('"%s",' % name for name in names[16:24]) + "\n        " +
                  " ".join('"%s",' % name for name in names[24:]) + "\n    ],\n)\n")
        one_line = "a(\n    deps = [" + ", ".join('"%s"' % name for name in names) + "],\n)\n"
        one_each = "a(\n    deps = [\n" + "".join('        "%s",\n' % name for name in names) + "    ],\n)\n"
        for text in (one_line, one_each, wanted):
            self.assertEqual(build_lists.formatted(text), wanted)
        self.assertLessEqual(max(map(len, wanted.splitlines())), 100)

    def test_what_follows_the_list_counts(self):
        text = 'data = [\n    "%s",\n] + MORE\n' % ("x" * 83)
        self.assertEqual(build_lists.formatted(text), text)
        self.assertEqual(build_lists.formatted(text.replace("x", "", 1)), 'data = ["%s"] + MORE\n' % ("x" * 82))

    def test_comments_and_rows_stay(self):
        for text in ('tags = [\n    "a",  # why\n    "b",\n]\n',
                     '# as in [\n#     "a",\n# ]\n',
                     '    ("%s", ["a", "b"], {"C": "1"}),\n' % ("x" * 90)):
            self.assertEqual(build_lists.formatted(text), text)

    def test_names_files_and_mends_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "BUILD")
            with open(path, "w", encoding="utf-8") as file:
                file.write('a = [\n    "b",\n]\n')

            def run(*options):
                return subprocess.run([sys.executable, "bazel/build_lists.py", *options, path], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout

            self.assertEqual(run(), path + "\n")
            self.assertEqual(run("--fix"), "")
            self.assertEqual(run(), "")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""What `./dev lint` counts of the tree as a whole, and what it refuses."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("bazel"))
import house_numbers  # noqa: E402


class HouseNumbersTest(unittest.TestCase):
    def setUp(self):
        self.home = os.getcwd()
        self.directory = tempfile.TemporaryDirectory()
        os.chdir(self.directory.name)

    def tearDown(self):
        os.chdir(self.home)
        self.directory.cleanup()

    def write(self, path, text):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_counts_habits_at_the_beginning_of_sentences_of_comments(self):
        path = self.write("client/rank/a.h", "// Whether it is there. Whether it is\n// whole: nobody knows.\n"
                                             "int whether;  // The same of both.\n"
                                             "// What it costs. Says what it costs, and to whom; who pays says nothing.\n"
                                             'const char* text = "Whether nobody";\n')
        self.assertEqual(dict(house_numbers.habits([path])), {
            ("client/rank", "whether"): 2, ("client/rank", "nobody"): 1, ("client/rank", "the same"): 1,
            ("client/rank", "who"): 1})

    def test_code_in_pages_and_questions_are_no_prose(self):
        path = self.write("docs/a.md", "# Title\n\nWhat is it? It is good.\n\n```\nWhether nobody\n```\n\n    Whether\n\n- Who waits, yields.\n")
        self.assertEqual(dict(house_numbers.habits([path])), {("docs", "who"): 1})

    def test_words_of_the_glossary_with_several_meanings(self):
        rows = house_numbers.glossary(
            "| word | meaning | where |\n|---|---|---|\n"
            "| lane | a ring of descriptors | `shm/lane.h` |\n"
            "| claim | Of a transfer: a word. In `progress`: the use of memory | `a.h` |\n"
            "| context | a number. Of operations: those of a quiet. Also: a device's state | `b.h` |\n"
            "| farewell | Of a rank: its last second | `c.h` |\n")
        self.assertEqual(rows, {"lane": 1, "claim": 2, "context": 3, "farewell": 1})

    def test_libraries_and_lines_are_those_of_the_product(self):
        rule = 'cc_library(\n    name = "a",\n    srcs = ["a.cc"],\n)\n'
        long = 'cc_library(\n    name = "b",\n    srcs = [\n        "a.cc",\n        "b.cc",\n    ],\n)\n'
        paths = [self.write("shm/BUILD", rule + long), self.write("tests/shm/BUILD", rule),
                 self.write("shm/a.cc", "1\n2\n3\n"), self.write("engine/a.cc", "1\n"), self.write("tests/shm/a.cc", "1\n2\n")]
        self.assertEqual(house_numbers.libraries(paths), (2, 1))
        files = 'cc_library(\n    name = "c",\n    files = ["a"],\n    srcs = ["b.cc"],\n)\n'
        self.assertEqual(house_numbers.libraries([self.write("coll/BUILD", rule + files)]), (2, 1))
        found = dict(house_numbers.numbers(paths))
        self.assertEqual(found["lines of the product"], "4")
        self.assertEqual(found["biggest upper folder"], "shm/, 75.0 %")
        self.assertEqual(found["lines of tests, benchmarks and examples"], "2")
        self.assertEqual(found["lines of BUILD files"], "15")

    def test_interfaces_by_their_pure_virtual_functions(self):
        path = self.write("client/a.h", "class Wide : public Base {\n virtual void A() = 0;\n virtual int B(\n   int x) = 0;\n};\n"
                                        "struct Plain {\n int count = 0;\n};\nclass Narrow {\n virtual void A() = 0;\n};\n")
        self.assertEqual(house_numbers.interfaces([path]), [(2, "Wide", "client/a.h"), (1, "Narrow", "client/a.h")])

    def test_only_what_grows_is_worse(self):
        baseline = house_numbers.read_baseline(self.write("baseline", "# comment\n2 client/rank the same\n1 shm who\n"))
        self.assertEqual(baseline, {("client/rank", "the same"): 2, ("shm", "who"): 1})
        self.assertEqual(house_numbers.worse(baseline, {("client/rank", "the same"): 2}), [])
        self.assertEqual(house_numbers.worse(baseline, {("client/rank", "the same"): 3, ("engine", "who"): 1}),
                         ["client/rank: 3 times 'the same', 2 were there", "engine: 1 times 'who', 0 were there"])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""Which rows of docs/dev/where.md `./dev lint` takes for wrong."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("bazel"))
import where  # noqa: E402

HEAD = "| question | file | name |\n|---|---|---|\n"


class WhereTest(unittest.TestCase):
    def lost(self, rows):
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(os.path.join(directory, "docs/dev"))
            os.makedirs(os.path.join(directory, "shm"))
            with open(os.path.join(directory, "shm/lane.h"), "w", encoding="utf-8") as file:
                file.write("class LaneProducer {};\n")
            page = os.path.join(directory, "docs/dev/where.md")
            with open(page, "w", encoding="utf-8") as file:
                file.write(rows)
            return [line.replace(directory, "") for line in where.lost(page)]

    def test_a_true_row_passes(self):
        self.assertEqual(self.lost(HEAD + "| Where? | [lane.h](../../shm/lane.h) | `LaneProducer` |\n"), [])

    def test_a_file_that_has_gone(self):
        self.assertEqual(self.lost(HEAD + "| Where? | [ring.h](../../shm/ring.h) | `Ring` |\n"), ["Where?: there is no /shm/ring.h"])

    def test_a_name_that_has_gone(self):
        self.assertEqual(self.lost(HEAD + "| Where? | [lane.h](../../shm/lane.h) | `LaneConsumer` |\n"),
                         ["Where?: /shm/lane.h has no LaneConsumer"])

    def test_rows_of_another_form_are_not_passed_over(self):
        self.assertEqual(len(self.lost(HEAD + "| Where? | [lane.h](../../shm/lane.h) | LaneProducer |\n")), 2)


if __name__ == "__main__":
    unittest.main()

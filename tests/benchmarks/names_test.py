#!/usr/bin/python3
"""All that the scripts of the benchmarks name is there: programs and libraries that the build makes, options of Ferry's,
and the scripts' own modules. The benchmarks themselves are built for this test, too."""

import ast
import glob
import os
import re
import subprocess
import unittest

SCRIPTS = sorted(glob.glob("benchmarks/*/run") + glob.glob("benchmarks/*/*.py"))
BUILT = "out/bin/"
# Of programs, not of Ferry's options.
FOREIGN = ("--benchmark_", "--mca")


def options():
    """Those of ferryd, which ferryrun takes, too."""
    text = subprocess.run(["daemon/ferryd", "--help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^  --([a-z0-9_]+)=", text, re.MULTILINE))


def text_of(node, constants):
    """The string that an expression makes, with * for what only a run tells; None: it makes no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, constants) or "*" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, constants)
    return None


def strings_of(path):
    """All that a script spells out."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = text_of(node.value, constants)
            if text is not None:
                constants[node.targets[0].id] = text
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = text_of(node, constants) if isinstance(node, (ast.Constant, ast.JoinedStr)) else None
        if text is not None and id(node) not in parts and id(node) not in comments:
            yield text


class NamesTest(unittest.TestCase):
    def each(self):
        self.assertGreater(len(SCRIPTS), 20)
        for path in SCRIPTS:
            for text in strings_of(path):
                with self.subTest(script=path, text=text):
                    yield text

    def test_programs_are_built(self):
        seen = 0
        for text in self.each():
            if text.startswith(BUILT) and " " not in text:
                seen += 1
                self.assertTrue(glob.glob(text[len(BUILT):]), "no such target")
        self.assertGreater(seen, 30)

    def test_options_are_known(self):
        known = options()
        self.assertGreater(len(known), 100)
        seen = 0
        for text in self.each():
            for name in re.findall(r"\bFERRY_([A-Z0-9_]+)", text):
                seen += 1
                name = name.lower()
                is_known = any(one.startswith(name) for one in known) if name.endswith("_") else name in known
                self.assertTrue(is_known, f"no option {name}")
            flag = re.match(r"--([a-z0-9]+_[a-z0-9_]+)=", text)
            if flag and not text.startswith(FOREIGN):
                seen += 1
                self.assertIn(flag[1], known)
        self.assertGreater(seen, 30)

    def test_scripts_start(self):
        for path in glob.glob("benchmarks/*/run"):
            with self.subTest(script=path):
                done = subprocess.run([path, "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("usage: " + path, done.stdout)


if __name__ == "__main__":
    unittest.main()

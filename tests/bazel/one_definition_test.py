#!/usr/bin/python3
"""What `./dev lint` takes for two definitions of one name."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, "bazel")
import one_definition  # noqa: E402


class OneDefinitionTest(unittest.TestCase):
    def found(self, *sources, endings=(".cc", ".cc")):
        """Kind and name of what is defined twice in these files."""
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for number, (source, ending) in enumerate(zip(sources, endings)):
                paths.append(os.path.join(directory, f"{number}{ending}"))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(source)
            return [line.split(": ")[0]
                    for line in one_definition.defined_twice(paths)]

    def test_types_of_one_namespace(self):
        self.assertEqual(
            self.found("namespace a::b {\nstruct T final : Base<int> { int x; };\n}",
                       "namespace a {\nnamespace b { class alignas(64) T { void F(); }; } }",
                       endings=(".h", ".h")),
            ["type a::b::T"])
        self.assertEqual(
            self.found("namespace a { enum class [[nodiscard]] E : int { kOne }; }",
                       "namespace a { template <typename X> union E { X x; }; }"),
            ["type a::E"])

    def test_functions_of_two_sources(self):
        self.assertEqual(
            self.found("namespace a { int F(int x, T{} y) { return 1; } }",
                       "namespace a { inline int F(int x, T{} y) { return 2; } }"),
            ["function a::F ( int x , T { } y )"])

    def test_overloads_and_headers_are_no_matter(self):
        self.assertEqual(self.found("namespace a { void F(int x) {} }",
                                    "namespace a { void F(long x) {} }"), [])
        self.assertEqual(self.found("namespace a { inline void F() {} }",
                                    "namespace a { inline void F() {} }",
                                    endings=(".h", ".cc")), [])

    def test_other_namespaces_are_no_matter(self):
        self.assertEqual(self.found("namespace a { struct T {}; }", "namespace b { struct T {}; }"),
                         [])

    def test_what_belongs_to_its_file_is_no_matter(self):
        self.assertEqual(
            self.found("namespace a { namespace { struct T {}; void F() {} }\nstatic void G() {} }",
                       "namespace a { namespace { struct T {}; void F() {} }\nstatic void G() {} }"),
            [])

    def test_declarations_and_members_are_no_matter(self):
        self.assertEqual(
            self.found("namespace a { struct T; void F(); struct U { struct V {}; }; }",
                       "namespace a { struct T; void F(); struct W { struct V {}; }; }"), [])

    def test_comments_texts_and_macros_are_no_matter(self):
        self.assertEqual(
            self.found("// namespace a { struct T {}; }\nnamespace a { const char* x = \"} struct T {\"; }",
                       "#define X namespace a { \\\n struct T {}; }\n"
                       "namespace a { const char* y = R\"x(struct T {)x\"; struct T {}; }"), [])


if __name__ == "__main__":
    unittest.main()

"""unittest.main, and a report of the skipped tests as GoogleTest makes it: without one, Bazel has none but of the whole program.
Used as

    sys.path.insert(0, "tests/support")
    import skips
    ...
    skips.main()
"""

import os
import sys
import unittest
from xml.sax.saxutils import quoteattr


def report(name, skipped):
    cases = [f'<testcase name={quoteattr(str(case))} result="skipped"><skipped message={quoteattr(f"{name} {reason}")}/>'
             "</testcase>" for case, reason in skipped]
    with open(os.environ["XML_OUTPUT_FILE"], "w", encoding="utf-8") as file:
        file.write(f'<testsuites><testsuite name={quoteattr(name)}><testcase name="All"/>{"".join(cases)}'
                   "</testsuite></testsuites>")


def main():
    program = unittest.main(exit=False)
    if program.result.wasSuccessful() and program.result.skipped and "XML_OUTPUT_FILE" in os.environ:
        report(os.path.splitext(os.path.basename(sys.argv[0]))[0], program.result.skipped)
    raise SystemExit(not program.result.wasSuccessful())

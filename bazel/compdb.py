"""Turns `bazel aquery 'mnemonic("CppCompile", ...)' --output=jsonproto` into compile_commands.json.

Reads standard input, writes standard output. Commands run in the workspace root, where Bazel's
bazel-out link makes generated headers visible.
"""

import json
import os
import sys

# Flags of gcc that clang's tools do not know.
GCC_ONLY = {"-fno-canonical-system-headers", "-Wno-free-nonheap-object",
            "-Wunused-but-set-parameter", "-Wno-tsan", "-Wno-restrict", "-Wno-stringop-overflow",
            "-Wno-stringop-overread", "--param=ggc-min-heapsize=524288"}

# Bazel redefines these for reproducible builds, which clang-tidy reports.
REDEFINED = ("-D__DATE__", "-D__TIME__", "-D__TIMESTAMP__")


def drop_prelude(arguments):
    """Tools read a file with the headers that it includes, and find those that it lacks (prelude.bzl)."""
    for at, argument in enumerate(arguments):
        if argument == "-include" and arguments[at + 1].endswith("/prelude.h"):
            del arguments[at:at + 2]
            return


def main():
    commands = []
    for action in json.load(sys.stdin).get("actions", []):
        arguments = [a for a in action["arguments"]
                     if a not in GCC_ONLY and not a.startswith(REDEFINED)]
        drop_prelude(arguments)
        source = arguments[arguments.index("-c") + 1]
        commands.append({"directory": os.getcwd(), "file": source, "arguments": arguments})
    json.dump(commands, sys.stdout, indent=1)


if __name__ == "__main__":
    main()

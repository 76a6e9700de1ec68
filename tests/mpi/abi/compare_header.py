#!/usr/bin/env python3
"""Compares a header with the binary interface of MPI 5.0: compare_header.py HEADER [FERRYS_FOLDER].

Every constant must have the number that constants.inc (beside this file) says, every type its size
and kind, every call the types of arguments that Ferry's headers declare (FERRYS_FOLDER: where their
mpi.h is, by default that of this checkout); neither side may have one that the other lacks. Names
of extensions (MPIX_) do not count. Prints what differs, a line each; ends with 1 if anything does.
The compiler is cc, or what CC names.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# Fortran's, which a header for C need not have.
OPTIONAL = {"MPI_Fint"}
OPTIONAL_CALLS = {f"MPI_Status_{way}" for way in ("c2f", "f2c", "c2f08", "f082c", "f2f08", "f082f")}
SIZES = {
    "MPI_Aint": 8,
    "MPI_Count": 8,
    "MPI_Offset": 8,
    "MPI_Status": 32,
    "MPI_T_cb_safety": 4,
    "MPI_T_source_order": 4,
}


def compile_c(source, *arguments):
    command = [os.environ.get("CC", "cc"), "-x", "c", "-w", *arguments, "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def must(result):
    if result.returncode != 0:
        sys.exit(f"the compiler does not take the header:\n{result.stderr}")
    return result.stdout


def expected_constants():
    text = (HERE / "constants.inc").read_text(encoding="utf-8")
    found = re.findall(r"^CONSTANT\((\w+), *([-\w]+)\)$", text, re.MULTILINE)
    return {name: int(number, 0) for name, number in found}


def constants_of(include):
    """The names of the constants that a header has: macros with a value, and enumerators."""
    macros = must(compile_c(include, "-E", "-dM"))
    names = set(re.findall(r"^#define (MPI_\w+) \S", macros, re.MULTILINE))
    for body in re.findall(r"\benum\b[^{;()]*\{([^}]*)\}", must(compile_c(include, "-E", "-P"))):
        names.update(re.findall(r"\b(MPI_\w+)\s*(?:=|,|$)", body))
    return names


def numbers_of(include, expressions):
    """What the expressions are in a program that includes the header."""
    lines = "\n".join(f'printf("%lld\\n", (long long)({what}));' for what in expressions)
    source = f"#include <stdio.h>\n{include}\nint main(void) {{\n{lines}\nreturn 0;\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        must(compile_c(source, "-o", f"{folder}/program"))
        run = subprocess.run([f"{folder}/program"], capture_output=True, text=True, check=True)
    return dict(zip(expressions, map(int, run.stdout.split())))


def compare_constants(include):
    expected = expected_constants()
    there = constants_of(include)
    for name in sorted(set(expected) - there):
        yield f"{name} is missing"
    for name in sorted(there - set(expected)):
        # An include guard's value is no number of the interface.
        if not name.startswith("MPI_H") and not name.endswith(("_H", "_H_", "_INCLUDED")):
            yield f"{name} is not in constants.inc"
    common = sorted(set(expected) & there)
    for name, number in numbers_of(include, common).items():
        if number != expected[name]:
            yield f"{name} is {number}, not {expected[name]}"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def declarations(folder):
    """Ferry's own: [(name, text)] of the types and of the calls, the latter under both names."""
    types, calls = [], []
    for file in sorted((folder / "ferry_mpi").glob("*.h")):
        if file.name.startswith("mpix_"):  # no part of the standard
            continue
        text = without_comments(file.read_text(encoding="utf-8"))
        for typedef in re.findall(r"^typedef [^{;]*;", text, re.MULTILINE):
            name = re.findall(r"\b(MPI_\w+)\b", typedef.split(")")[0])[-1]
            if name not in OPTIONAL:
                types.append((name, typedef))
        pattern = r"^FERRY_MPI\((\w[^,]*), (\w+), (\(.*?\))\);"
        for result, name, parameters in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
            for prefix in ("MPI_", "PMPI_"):
                calls.append((prefix + name, f"{result} {prefix}{name}{parameters};"))
    return types, calls


def compare_declarations(include, folder):
    """Each of Ferry's declarations must repeat one of the header's; a line of source for each."""
    types, calls = declarations(folder)
    lines, said = [], []
    for name, text in types + calls:
        text = " ".join(text.split())
        lines += [f"extern __typeof__({name}) *ferry_has_{name};", text]
        said += [f"{name} is missing", f"{name} differs; Ferry has: {text}"]
    source = include + "\n#line 1 \"declarations\"\n" + "\n".join(lines) + "\n"
    result = compile_c(source, "-fsyntax-only", "-fmax-errors=0", "-std=gnu11")
    wrong = {int(line) for line in re.findall(r"^declarations:(\d+):\d+: error", result.stderr,
                                              re.MULTILINE)}
    for line in sorted(wrong):
        if line % 2 == 1 or line - 1 not in wrong:  # what is missing cannot differ, too
            yield said[line - 1]
    if result.returncode != 0 and not wrong:
        yield result.stderr
    text = must(compile_c(include, "-E", "-P"))
    declared = set(re.findall(r"\b(P?MPI_[A-Z]\w*)\s*\(", text))
    for name in sorted(declared - OPTIONAL_CALLS - {name for name, _ in types + calls}):
        yield f"{name} is no call of Ferry's"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    include = f'#include "{pathlib.Path(sys.argv[1]).resolve()}"'
    folder = HERE.parents[2] / "include/ferry/mpi"
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else folder
    differences = list(compare_constants(include))
    differences += compare_declarations(include, folder)
    if not differences:
        sizes = numbers_of(include, [f"sizeof({name})" for name in SIZES])
        for name, size in SIZES.items():
            if sizes[f"sizeof({name})"] != size:
                differences.append(f"{name} has {sizes[f'sizeof({name})']} bytes, not {size}")
    print("\n".join(differences) if differences else
          f"{len(expected_constants())} constants, {len(declarations(folder)[1])} calls: all alike")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()

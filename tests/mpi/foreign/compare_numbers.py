#!/usr/bin/env python3
"""compare_numbers.py NUMBERS HEADERS: compares each number of a binary interface (NUMBERS has lines of
a name and a number; those with the word `newer` are left out) with what the mpi.h in HEADERS says. Prints each difference, and how many names
it has looked at."""

import pathlib
import subprocess
import sys
import tempfile


def main(arguments):
    if len(arguments) != 2:
        sys.exit("usage: compare_numbers.py NUMBERS HEADERS")
    lines = pathlib.Path(arguments[0]).read_text(encoding="ascii").splitlines()
    ours = {name: int(number, 0) for name, number in
            (line.split() for line in lines
             if not line.startswith("#") and not line.endswith(" newer"))}
    prints = "".join(f'  printf("{name} %d\\n", (int)(intptr_t)({name}));\n' for name in ours)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "numbers.c"
        source.write_text("#include <mpi.h>\n#include <stdint.h>\n#include <stdio.h>\n"
                          f"int main(void) {{\n{prints}  return 0;\n}}\n", encoding="ascii")
        program = pathlib.Path(folder) / "numbers"
        subprocess.run(["gcc", "-w", "-I", arguments[1], str(source), "-o", str(program)],
                       check=True)
        theirs = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    differences = 0
    for name, number in (line.split() for line in theirs.splitlines()):
        if (ours[name] - int(number)) % 2**32 != 0:
            print(f"{name} is {number}, not {ours[name]}")
            differences += 1
    print(f"{len(ours)} names, {differences} differences")


if __name__ == "__main__":
    main(sys.argv[1:])

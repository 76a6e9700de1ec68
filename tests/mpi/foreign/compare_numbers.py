#!/usr/bin/env python3
"""compare_numbers.py NUMBERS HEADERS LIBRARY: compares the numbers of a binary interface with what
the mpi.h in HEADERS says, and mpif-handles.h if there is one. NUMBERS has lines of a name and a
number; or of a handle, its object, the bytes of this object, and the handle's number in Fortran;
those with the word `newer` are left out if this mpi.h does not have them. Prints each difference,
and how many names it has looked at."""

import pathlib
import re
import subprocess
import sys
import tempfile


def of_c(prints, headers, library):
    """What a program prints that the header has made."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "numbers.c"
        source.write_text("#include <mpi.h>\n#include <stdint.h>\n#include <stdio.h>\n"
                          f"int main(void) {{\n{prints}  return 0;\n}}\n", encoding="ascii")
        program = pathlib.Path(folder) / "numbers"
        # Open MPI's header refuses what the standard has no more, unless it is told otherwise.
        options = ["-DOMPI_OMIT_MPI1_COMPAT_DECLS=0", "-DOMPI_REMOVED_USE_STATIC_ASSERT=0"]
        subprocess.run(["gcc", "-w", *options, "-I", headers, str(source), "-o", str(program),
                        library], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def main(arguments):
    if len(arguments) != 3:
        sys.exit("usage: compare_numbers.py NUMBERS HEADERS LIBRARY")
    lines = pathlib.Path(arguments[0]).read_text(encoding="ascii").splitlines()
    known = set(re.findall(r"\bMPI_\w+", (pathlib.Path(arguments[1]) / "mpi.h").read_text(encoding="utf-8")))
    rows = [line.removesuffix(" newer").split() for line in lines
            if not line.startswith("#")
            and (not line.endswith(" newer") or line.split()[0] in known)]
    ours = {row[0]: int(row[1], 0) for row in rows if len(row) == 2}
    objects = {row[0]: row[1] for row in rows if len(row) == 4}
    fortran = {row[0]: row[3] for row in rows if len(row) == 4}
    ours.update((name, 1) for name in objects)
    prints = "".join(f'  printf("{name} %d\\n", (int)(intptr_t)({name}));\n'
                     for name in ours if name not in objects)
    # What the standard has no more is there for some compilers only.
    prints += "".join(f'#ifdef {name}\n  printf("{name} %d\\n", (void*){name} == '
                      f'(void*)&{object});\n#endif\n' for name, object in objects.items())
    differences = 0
    looked_at = 0
    for name, number in (line.split() for line in
                         of_c(prints, arguments[1], arguments[2]).splitlines()):
        looked_at += 1
        if (ours[name] - int(number)) % 2**32 != 0:
            print(f"{name} is {number}, not {ours[name]}")
            differences += 1
    text = "".join(path.read_text(encoding="utf-8")
                   for path in pathlib.Path(arguments[1]).glob("mpif-*handles.h"))
    theirs = dict(re.findall(r"parameter \((MPI_\w+)=(-?\d+)\)", text))
    for name, number in fortran.items():
        looked_at += 1
        if theirs.get(name, "-") != number:
            print(f"{name} is {theirs.get(name)} in Fortran, not {number}")
            differences += 1
    print(f"{looked_at} names, {differences} differences")


if __name__ == "__main__":
    main(sys.argv[1:])

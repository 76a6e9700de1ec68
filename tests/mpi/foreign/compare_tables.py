#!/usr/bin/env python3
"""compare_tables.py OURS THEIRS: compares the tables of virtual functions of two libraries with C++
bindings: for each class that THEIRS shows, the same functions at the same places, and objects of the
same size. Prints the differences, and how many tables and objects it has compared."""

import subprocess
import sys


def _lines(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


class Library:
    def __init__(self, path):
        self.symbols = {}  # name: (address, bytes)
        functions = {}  # address: name
        for line in _lines("readelf", "-W", "--dyn-syms", path):
            words = line.split()
            if len(words) == 8 and words[0][0].isdigit() and words[6] != "UND":
                address = int(words[1], 16)
                if words[3] == "OBJECT":
                    self.symbols[words[7]] = (address, int(words[2], 0))
                elif words[3] == "FUNC" and "C1E" not in words[7]:
                    functions[address] = words[7]
        self.pointers = {}  # address: name
        for line in _lines("readelf", "-W", "-r", path):
            words = line.split()
            if len(words) >= 5 and words[2] == "R_X86_64_64":
                self.pointers[int(words[0], 16)] = words[4]
            elif len(words) == 4 and words[2] == "R_X86_64_RELATIVE":
                address = int(words[3], 16)
                self.pointers[int(words[0], 16)] = functions.get(address, hex(address))

    def words_of(self, name):
        address, size = self.symbols[name]
        return [self.pointers.get(address + offset, "0") for offset in range(0, size, 8)]


def _without_kind(name):
    """A destructor's complete and base forms are one function."""
    return name.replace("D2Ev", "D1Ev") if name.startswith("_ZN3MPI") else name


def main(ours_path, theirs_path):
    ours, theirs = Library(ours_path), Library(theirs_path)
    tables = objects = differences = 0
    for name, (_, size) in sorted(theirs.symbols.items()):
        if name not in ours.symbols:
            if name.startswith(("_ZTVN3MPI", "_ZN3MPI")):
                differences += 1
                print(f"{name} is not there")
        elif name.startswith("_ZTVN3MPI"):
            tables += 1
            pair = [[_without_kind(one) for one in library.words_of(name)]
                    for library in (ours, theirs)]
            differences += pair[0] != pair[1]
            for place, (left, right) in enumerate(zip(*pair)):
                if left != right:
                    print(f"{name}[{place}]: {left}, theirs {right}")
            if len(pair[0]) != len(pair[1]):
                print(f"{name}: {len(pair[0])} words, theirs {len(pair[1])}")
        elif name.startswith("_ZN3MPI") and "version_string" not in name:
            objects += 1
            if ours.symbols[name][1] != size:
                differences += 1
                print(f"{name}: {ours.symbols[name][1]} bytes, theirs {size}")
    print(f"{tables} tables, {objects} objects, {differences} differences")


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""generate.py WHAT FOLDER [HEADERS]: writes what is made from the table of MPI's Fortran
procedures.

WHAT: definitions (the C++ of libmpifort_abi), mpif (the same for Open MPI's modules), by_hand (what the
procedures that are written by hand are declared in), exports (the names that it shows), sources (mpif.h
and the modules; HEADERS is the folder of the C headers, which have the constants).
"""

import pathlib
import sys

import declarations
import definitions
import f08
import mpix


def _sources(headers):
    constants_h = (headers / "constants.h").read_text(encoding="ascii")
    handles_h = (headers / "handles.h").read_text(encoding="ascii")
    return {"mpif.h": declarations.mpif_h(constants_h, handles_h),
            "mpi.f90": declarations.module_mpi(),
            "mpi_f08.f90": f08.module(constants_h, handles_h, True),
            "mpi_f08_addresses.f90": f08.module(constants_h, handles_h, False), **mpix.modules()}


def _exports():
    shown = "".join(f"    {name};\n" for name in definitions.names() + mpix.names())
    return {"exports.lds": f"{{\n  global:\n{shown}  local: *;\n}};\n"}


def main(arguments):
    makers = {"definitions": lambda: {**definitions.sources(True), **mpix.source()},
              "mpif": lambda: definitions.sources(False), "by_hand": definitions.by_hand,
              "exports": _exports,
              "sources": lambda: _sources(pathlib.Path(arguments[2]))}
    if len(arguments) not in (2, 3) or arguments[0] not in makers:
        sys.exit(f"usage: generate.py {'|'.join(makers)} FOLDER [HEADERS]")
    for path, content in makers[arguments[0]]().items():
        file = pathlib.Path(arguments[1]) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""generate.py WHAT FOLDER: writes what is made from the table of OpenSHMEM's functions into FOLDER.

WHAT: headers, definitions, exports.
"""

import pathlib
import sys

import definitions
import header

MAKERS = {
    "headers": header.headers,
    "definitions": definitions.sources,
    "exports": definitions.exports,
}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in MAKERS:
        sys.exit(f"usage: generate.py {'|'.join(MAKERS)} FOLDER")
    for path, content in MAKERS[arguments[0]]().items():
        file = pathlib.Path(arguments[1]) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The named constants of MPI in Fortran: those of the C headers, and what differs from them.

The headers are the table: enum members, and macros that are numbers or handles.
"""

import re

# Only C has them: MPI_T, statuses as C sees them, callbacks.
_ONLY_C = re.compile(r"MPI_T_|MPI_F_|MPI_(MAX_)?ERR_LASTCODE_")

# Fortran's strings have no zero at their end, so their greatest lengths are one less
# (MPI 5.0, section 19.3.9).
_STRING_LENGTHS = re.compile(r"MPI_MAX_")

_KINDS = "Comm Datatype Errhandler File Group Info Message Op Request Session Win".split()

# Constants that C has not. Kinds of numbers are those of 64-bit systems.
FORTRAN_ONLY = {
    "MPI_STATUS_SIZE": "8",
    "MPI_SOURCE": "1",
    "MPI_TAG": "2",
    "MPI_ERROR": "3",
    "MPI_ADDRESS_KIND": "SELECTED_INT_KIND(18)",
    "MPI_COUNT_KIND": "SELECTED_INT_KIND(18)",
    "MPI_OFFSET_KIND": "SELECTED_INT_KIND(18)",
    "MPI_INTEGER_KIND": "KIND(0)",
}

# Commons by whose address an argument is recognised: the constant, its declaration, its C type.
SENTINELS = [
    ("MPI_BOTTOM", "INTEGER MPI_BOTTOM", 4),
    ("MPI_IN_PLACE", "INTEGER MPI_IN_PLACE", 4),
    ("MPI_BUFFER_AUTOMATIC", "INTEGER MPI_BUFFER_AUTOMATIC", 4),
    ("MPI_STATUS_IGNORE", "INTEGER MPI_STATUS_IGNORE(8)", 32),
    ("MPI_STATUSES_IGNORE", "INTEGER MPI_STATUSES_IGNORE(8,1)", 32),
    ("MPI_ERRCODES_IGNORE", "INTEGER MPI_ERRCODES_IGNORE(1)", 4),
    ("MPI_UNWEIGHTED", "INTEGER MPI_UNWEIGHTED(1)", 4),
    ("MPI_WEIGHTS_EMPTY", "INTEGER MPI_WEIGHTS_EMPTY(1)", 4),
    ("MPI_ARGV_NULL", "CHARACTER*1 MPI_ARGV_NULL(1)", 1),
    ("MPI_ARGVS_NULL", "CHARACTER*1 MPI_ARGVS_NULL(1,1)", 1),
]


def common(name):
    """The name of a sentinel's common block."""
    return name.replace("MPI_", "FERRY_MPI_")


def _number(text):
    return int(text, 0)


def integers(constants_h):
    """(name, value) of the integer constants."""
    text = re.sub(r"/\*.*?\*/", "", constants_h, flags=re.S)
    found = [(name, _number(value)) for name, value in
             re.findall(r"#define (MPI_\w+)\s+(-?\d+)\s*$", text, flags=re.M)]
    for body in re.findall(r"enum \{(.*?)\}", text, flags=re.S):
        found += [(name, _number(value)) for name, value in
                  re.findall(r"(MPI_\w+)\s*=\s*(-?\w+)", body)]
    return [(name, value - 1 if _STRING_LENGTHS.match(name) else value) for name, value in found
            if not _ONLY_C.match(name)]


def handles(handles_h):
    """(name, kind, value) of the predefined handles."""
    text = re.sub(r"/\*.*?\*/", "", handles_h, flags=re.S)
    found = []
    values = {}
    for name, kind, value, other in re.findall(
            r"#define (MPI_\w+)\s+(?:\(\(MPI_(\w+)\)(0x\w+)\)|(MPI_\w+))\s*$", text, flags=re.M):
        if other:
            kind, number = values[other]
        elif kind in _KINDS:
            number = int(value, 16)
        else:
            continue
        values[name] = (kind, number)
        found.append((name, kind, number))
    return found

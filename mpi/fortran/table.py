"""The table of the procedures that MPI 5.0 has in Fortran: what all else in this folder is made
from.

It stands in calls/*.txt, a file for each of the C headers that declare the same calls. A line is

    [RESULT] NAME(ARGUMENT, ...) [FLAG ...]

and goes on in the next one where that is indented. NAME is the standard's without MPI_, in its
case in C; RESULT is that of the few functions. There is no `ierror`: each procedure has it but
those with `no_ierror`. An ARGUMENT is

    name[length] [out|inout] KIND [async] [plain] [root]

Its KIND is int, aint (ADDRESS_KIND), count (COUNT_KIND), offset (OFFSET_KIND), logical, string
(string:MAX, where that is the most it may become), strings and strings2 (the arguments of
programs), status, index (from 1 in Fortran, from 0 in C), weights (may be MPI_UNWEIGHTED), buffer
(of any type), address (of memory that MPI gives), detached (memory that MPI gives back: of any
type, and unused, but in mpi_f08), a handle's kind with a capital letter (Comm), or the name of a
callback's prototype. `int/count` is int, and count in the procedure of large counts; `-/count` is
only there in the latter. `async`: ASYNCHRONOUS in mpi_f08; `plain`: without INTENT there; `root`:
significant at the root alone.

FLAGs: `large`, there is one of large counts, too; `old`, deprecated and without a form of its own
in mpi_f08; `modules`, not in mpif.h.

mpix.txt has Ferry's additions in the same form, MPIX_ for MPI_. Kinds of theirs are queue,
queue_type, stream (the address of a GPU's stream) and prequest.
"""

import dataclasses
import functools
import pathlib
import re

HANDLES = ["Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request",
           "Session", "Win"]
PLAIN_KINDS = ["int", "aint", "count", "offset", "logical", "string", "strings", "strings2", "status",
               "index", "weights", "buffer", "address", "detached", "f90status", "f08status", "queue",
               "queue_type", "stream", "prequest"]
CALLBACKS = ["Comm_errhandler_function", "Session_errhandler_function", "Win_errhandler_function",
             "File_errhandler_function", "Comm_copy_attr_function", "Comm_delete_attr_function",
             "Type_copy_attr_function", "Type_delete_attr_function", "Win_copy_attr_function",
             "Win_delete_attr_function", "Copy_function", "Delete_function", "User_function",
             "Grequest_query_function", "Grequest_free_function", "Grequest_cancel_function",
             "Datarep_extent_function", "Datarep_conversion_function"]
# These have a prototype of their own in the procedure of large counts.
LARGE_CALLBACKS = {"User_function": "User_function_c",
                   "Datarep_conversion_function": "Datarep_conversion_function_c"}


@dataclasses.dataclass(frozen=True)
class Argument:
    name: str
    kind: str  # of the procedure without large counts; None if it has no such argument
    large_kind: str
    length: str = ""  # of an array, as the table has it: "count", "*", "3,n"
    most: str = ""  # the string's greatest length
    direction: str = "in"
    flags: tuple = ()

    @property
    def is_handle(self):
        return self.kind in HANDLES

    @property
    def is_callback(self):
        return self.kind in CALLBACKS or self.kind in LARGE_CALLBACKS.values()


@dataclasses.dataclass(frozen=True)
class Procedure:
    name: str
    result: str  # "", "double", "aint"
    arguments: tuple
    flags: tuple
    group: str  # the file it stands in

    @property
    def is_added(self):
        """One of Ferry's own, which is no part of MPI."""
        return self.group == "mpix"

    @property
    def has_ierror(self):
        return "no_ierror" not in self.flags

    @property
    def small(self):
        """Its arguments without large counts."""
        return self.form(False)

    def form(self, large):
        """Its arguments, with or without large counts: `kind` is then that of the form."""
        return [dataclasses.replace(one, kind=one.large_kind if large else one.kind)
                for one in self.arguments if large or one.kind]

    @property
    def has_buffer(self):
        return any(argument.kind == "buffer" for argument in self.arguments)

    @property
    def has_handle(self):
        return any(argument.is_handle for argument in self.arguments)


_ARGUMENT = re.compile(r"(\w+)(?:\[([^\]]+)\])? (?:(out|inout) )?([\w/-]+)(?::(\w+))?((?: \w+)*)$")
_LINE = re.compile(r"(?:(\w+) )?(\w+)\((.*)\)((?: \w+)*)$")


def _argument(text):
    match = _ARGUMENT.match(text)
    if not match:
        raise ValueError(f"no argument: {text}")
    name, length, direction, kinds, most, flags = match.groups()
    kind, _, large_kind = kinds.partition("/")
    for one in (kind, large_kind):
        if one not in ["", "-"] + HANDLES + PLAIN_KINDS + CALLBACKS:
            raise ValueError(f"no kind of argument: {text}")
    return Argument(name, None if kind == "-" else kind,
                    large_kind or LARGE_CALLBACKS.get(kind, kind), length or "", most or "",
                    direction or "in", tuple(flags.split()))


def _procedure(line, group):
    match = _LINE.match(line)
    if not match:
        raise ValueError(f"no procedure: {line}")
    result, name, arguments, flags = match.groups()
    # A comma between brackets is part of a length.
    pieces = [piece for piece in re.split(r", (?=\w+[\[ ])", arguments) if piece]
    return Procedure(name, result or "", tuple(map(_argument, pieces)), tuple(flags.split()), group)


def groups():
    """The names of the files that the table stands in."""
    return sorted(path.stem for path in (pathlib.Path(__file__).parent / "calls").glob("*.txt"))


def _parsed(path):
    text = re.sub(r"#.*\n", "", path.read_text(encoding="ascii"))
    return [_procedure(line, path.stem) for line in re.sub(r"\n +", " ", text).splitlines()
            if line]


@functools.cache
def procedures():
    folder = pathlib.Path(__file__).parent / "calls"
    return [one for group in groups() for one in _parsed(folder / f"{group}.txt")]


@functools.cache
def additions():
    """The procedures of Ferry's own."""
    return _parsed(pathlib.Path(__file__).parent / "mpix.txt")

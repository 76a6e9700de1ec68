"""The module mpi_f08: typed constants, abstract interfaces of callbacks, and an interface of each
procedure, with and without large counts, under the specific names of the standard (MPI 5.0,
sections 19.1.4 and 19.1.5).

There are two of it, the same for programs but for their buffers. gfortran's has buffers of any type
and rank, of which it passes a description, so that sections of arrays are no copies (row 1B of the
standard's table of names: MPI_Isend_f08ts). That for other compilers, whose descriptions differ, is
handed addresses (row 1A: MPI_Isend_f08), and sections are packed by the compiler.
"""

import constants
import table
from text import lines

_AINT, _COUNT, _OFFSET = (f"INTEGER(KIND=MPI_{one}_KIND)" for one in ("ADDRESS", "COUNT", "OFFSET"))
_KINDS = {"int": "INTEGER", "index": "INTEGER", "weights": "INTEGER", "logical": "LOGICAL",
          "string": "CHARACTER(LEN=*)", "strings": "CHARACTER(LEN=*)",
          "strings2": "CHARACTER(LEN=*)", "aint": _AINT, "count": _COUNT, "offset": _OFFSET,
          "address": "TYPE(C_PTR)", "detached": "TYPE(C_PTR)", "status": "TYPE(MPI_Status)"}

_POINTER = "TYPE(C_PTR), VALUE"


def _attributes(kind, low):
    """The prototypes of the attributes of communicators, datatypes or windows."""
    handle = f"TYPE(MPI_{kind})"
    name = {"Comm": "Comm", "Datatype": "Type", "Win": "Win"}[kind]
    return [(f"{name}_copy_attr_function",
             [(f"old{low}", handle), (f"{low}_keyval", "INTEGER"), ("extra_state", _AINT),
              ("attribute_val_in", _AINT), ("attribute_val_out", _AINT), ("flag", "LOGICAL"),
              ("ierror", "INTEGER")]),
            (f"{name}_delete_attr_function",
             [(low, handle), (f"{low}_keyval", "INTEGER"), ("attribute_val", _AINT),
              ("extra_state", _AINT), ("ierror", "INTEGER")])]


# The abstract interfaces of callbacks (MPI 5.0, section A.1.3): name, arguments.
PROTOTYPES = (
    [(f"User_function{token}", [("invec", _POINTER), ("inoutvec", _POINTER), ("len", count),
                                ("datatype", "TYPE(MPI_Datatype)")])
     for token, count in (("", "INTEGER"), ("_c", _COUNT))] +
    _attributes("Comm", "comm") + _attributes("Datatype", "datatype") + _attributes("Win", "win") +
    [(f"{kind}_errhandler_function", [(low, f"TYPE(MPI_{kind})"), ("error_code", "INTEGER")])
     for kind, low in (("Comm", "comm"), ("Win", "win"), ("File", "file"), ("Session", "session"))] +
    [("Grequest_query_function",
      [("extra_state", _AINT), ("status", "TYPE(MPI_Status)"), ("ierror", "INTEGER")]),
     ("Grequest_free_function", [("extra_state", _AINT), ("ierror", "INTEGER")]),
     ("Grequest_cancel_function",
      [("extra_state", _AINT), ("complete", "LOGICAL"), ("ierror", "INTEGER")]),
     ("Datarep_extent_function", [("datatype", "TYPE(MPI_Datatype)"), ("extent", _AINT),
                                  ("extra_state", _AINT), ("ierror", "INTEGER")])] +
    [(f"Datarep_conversion_function{token}",
      [("userbuf", _POINTER), ("datatype", "TYPE(MPI_Datatype)"), ("count", count),
       ("filebuf", _POINTER), ("position", _OFFSET), ("extra_state", _AINT), ("ierror", "INTEGER")])
     for token, count in (("", "INTEGER"), ("_c", _COUNT))])

# Nothing but a callback's prototype tells the form of large counts: programs call it by its name.
BY_NAME = ["Op_create", "Register_datarep"]


def procedures():
    """Those of mpi_f08 (but Sizeof, which is in the module of the types)."""
    return [one for one in table.procedures()
            if "old" not in one.flags and "modules" not in one.flags and one.name != "Sizeof"]


def has_large(procedure):
    """On 64 bits the two forms of some procedures are one: there is nothing to choose by."""
    same = {"aint": "8", "count": "8", "offset": "8"}
    small, large = ([same.get(one.kind, one.kind) for one in procedure.form(large)]
                    for large in (False, True))
    return "large" in procedure.flags and (small != large or procedure.name in BY_NAME)


def specific_name(procedure, large, described):
    token = "_f08ts" if described and procedure.has_buffer else "_f08"
    return procedure.name + ("_c" if large else "") + token


def declared(argument, described):
    name, kind = argument.name, argument.kind
    intent = {"in": "IN", "out": "OUT", "inout": "INOUT"}[argument.direction]
    attributes = ", ASYNCHRONOUS" if "async" in argument.flags else ""
    # What may be a constant of MPI's is not said to be written: compilers would forget what stood
    # in it. Nor may a buffer of any type be INTENT(OUT).
    may_say = kind != "status" and (kind != "buffer" or intent == "IN")
    if may_say and "plain" not in argument.flags:
        attributes += f", INTENT({intent})"
    if argument.is_callback:
        return lines(f"PROCEDURE(MPI_{kind}) :: {name}")
    if kind == "buffer" and described:
        return lines(f"TYPE(*), DIMENSION(..){attributes} :: {name}")
    if kind == "buffer":
        return (f"!DIR$ IGNORE_TKR {name}\n!DEC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n" +
                lines(f"REAL{attributes} :: {name}(*)"))
    type_ = f"TYPE(MPI_{kind})" if argument.is_handle else _KINDS[kind]
    shape = f"({argument.length})" if argument.length else ""
    shape = {"strings": "(*)", "strings2": "(count,*)"}.get(kind, shape)
    return lines(f"{type_}{attributes} :: {name}{shape}")


def _body(procedure, prefix, large, described):
    arguments = procedure.form(large)
    name = prefix + specific_name(procedure, large, described)
    names = [one.name for one in arguments] + (["ierror"] if procedure.has_ierror else [])
    result = {"": "", "double": "DOUBLE PRECISION ", "aint": f"{_AINT} "}[procedure.result]
    what = "FUNCTION" if procedure.result else "SUBROUTINE"
    text = lines(f"{result}{what} {name}({','.join(names)})") + lines("IMPORT")
    # The lengths of arrays stand before them.
    for argument in sorted(arguments, key=lambda one: bool(one.length) or one.kind == "strings2"):
        text += declared(argument, described)
    if procedure.has_ierror:
        text += lines("INTEGER, OPTIONAL, INTENT(OUT) :: ierror")
    return text + lines(f"END {what}")


def _interfaces(described):
    text = ""
    for prefix in ("MPI_", "PMPI_"):
        for procedure in procedures():
            text += lines(f"INTERFACE {prefix}{procedure.name}")
            text += _body(procedure, prefix, False, described)
            if has_large(procedure) and procedure.name not in BY_NAME:
                text += _body(procedure, prefix, True, described)
            text += lines("END INTERFACE")
            if procedure.name in BY_NAME:
                text += lines(f"INTERFACE {prefix}{procedure.name}_c")
                text += _body(procedure, prefix, True, described) + lines("END INTERFACE")
    return text


def _callbacks():
    text = lines("ABSTRACT INTERFACE")
    for name, arguments in PROTOTYPES:
        text += lines(f"SUBROUTINE MPI_{name}({','.join(one for one, _ in arguments)})")
        text += lines("IMPORT")
        text += "".join(lines(f"{type_} :: {one}") for one, type_ in arguments)
        text += lines("END SUBROUTINE")
    text += lines("END INTERFACE")
    for kind, name in (("COMM", "Comm"), ("TYPE", "Type"), ("WIN", "Win")):
        for function, form in (("DUP", "copy"), ("NULL_COPY", "copy"), ("NULL_DELETE", "delete")):
            text += lines(f"PROCEDURE(MPI_{name}_{form}_attr_function) :: MPI_{kind}_{function}_FN")
    for token in ("", "_c"):
        text += lines(f"PROCEDURE(MPI_Datarep_conversion_function{token}) :: "
                      f"MPI_CONVERSION_FN_NULL{token.upper()}")
    return text


def _constants(constants_h, handles_h, described):
    text = ""
    for name, value in constants.FORTRAN_ONLY.items():
        text += lines(f"INTEGER, PARAMETER :: {name}={value}")
    for name, value in constants.integers(constants_h):
        text += lines(f"INTEGER, PARAMETER :: {name}={value}")
    for name, kind, value in constants.handles(handles_h):
        text += lines(f"TYPE(MPI_{kind}), PARAMETER :: {name}=MPI_{kind}({value})")
    text += lines(f"{_OFFSET}, PARAMETER :: MPI_DISPLACEMENT_CURRENT=-1")
    supported = ".TRUE." if described else ".FALSE."
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        text += lines(f"LOGICAL, PARAMETER :: {name}={supported}")
    # The same blocks as those of mpif.h: the two for statuses have the type MPI_Status here.
    typed = {"MPI_STATUS_IGNORE": "TYPE(MPI_Status) MPI_STATUS_IGNORE",
             "MPI_STATUSES_IGNORE": "TYPE(MPI_Status) MPI_STATUSES_IGNORE(1)"}
    for name, declaration, _ in constants.SENTINELS:
        text += lines(typed.get(name, declaration))
        text += lines(f"COMMON /{constants.common(name)}/ {name}")
    return text


def module(constants_h, handles_h, described):
    return (lines("MODULE MPI_F08") +
            lines("USE, INTRINSIC :: ISO_C_BINDING, ONLY : C_PTR") +
            lines("USE FERRY_MPI_TYPES") + lines("IMPLICIT NONE") +
            lines("PRIVATE :: C_PTR") +
            _constants(constants_h, handles_h, described) + _callbacks() + _interfaces(described) +
            lines("END MODULE"))


def specifics():
    """(procedure, is large, is described) of each specific procedure that the library has. Those
    with buffers are there for gfortran, and for other compilers."""
    found = []
    for procedure in procedures():
        for large in (False, True) if has_large(procedure) else (False,):
            found.append((procedure, large, False))
            if procedure.has_buffer:
                found.append((procedure, large, True))
    return found


def names():
    """The names of the library that only mpi_f08 has."""
    found = [f"{prefix}{specific_name(*one)}_".lower()
             for one in specifics() for prefix in ("MPI_", "PMPI_")]
    return found + ["mpi_conversion_fn_null_c_"]

"""Ferry's additions to MPI that programs on GPUs need (mpix.txt: matches, queues, partitions), in
Fortran: the module ferry_mpix and the procedures behind it, mpix_match_ and the like.

Each procedure has an interface with integers for handles, as `mpi` has them, and one with types, as
mpi_f08 has them (mpix_match_f08_, a second name). `ierror` is optional in both. Queues are integers
of 8 bytes, Prequests are addresses, for kernels, and partitions count from 0 as in MPI_Pready.

As of mpi_f08 there are two of the module: in gfortran's the buffers of the second interface are
described (mpix_pbcast_init_f08ts_).
"""

import constants
import definitions
import f08
import table
from text import lines

_QUEUE_TYPES = ("FERRY", "CUDA", "HIP", "LEVEL_ZERO")  # from 0 on, as in mpix.h
_QUEUE = "INTEGER(KIND=MPIX_QUEUE_KIND)"
_KINDS = {"queue": _QUEUE, "queue_type": "INTEGER", "stream": "TYPE(C_PTR)",
          "prequest": "TYPE(C_PTR)"}


def _untyped(argument):
    """The declaration of an argument where handles are integers. Buffers are packed there, if they
    are sections, so that a compiler that sees the attribute ASYNCHRONOUS refuses them."""
    intent = {"in": "IN", "out": "OUT", "inout": "INOUT"}[argument.direction]
    name = argument.name
    if argument.kind == "buffer":
        return (f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n!DIR$ IGNORE_TKR {name}\n"
                f"!DEC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n" +
                lines(f"REAL, ASYNCHRONOUS :: {name}(*)"))
    shape = f"({argument.length})" if argument.length else ""
    return lines(f"INTEGER, INTENT({intent}) :: {name}{shape}")


def _declared(argument, is_typed, described):
    if argument.kind in _KINDS:
        intent = {"in": "IN", "out": "OUT", "inout": "INOUT"}[argument.direction]
        return lines(f"{_KINDS[argument.kind]}, INTENT({intent}) :: {argument.name}")
    if not is_typed and (argument.is_handle or argument.kind == "buffer"):
        return _untyped(argument)
    return f08.declared(argument, described)


def _interface(procedure, is_typed, described):
    arguments = procedure.small
    name = f08.specific_name(procedure, False, described) if is_typed else procedure.name
    text = lines(f"SUBROUTINE MPIX_{name}({','.join(one.name for one in arguments)},ierror)")
    text += lines("IMPORT")
    for argument in sorted(arguments, key=lambda one: bool(one.length)):
        text += _declared(argument, is_typed, described)
    return text + lines("INTEGER, OPTIONAL, INTENT(OUT) :: ierror") + lines("END SUBROUTINE")


def _module(described):
    handles = "MPI_Comm, MPI_Datatype, MPI_Info, MPI_Op, MPI_Request"
    text = lines("MODULE ferry_mpix")
    text += lines("USE, INTRINSIC :: ISO_C_BINDING, ONLY : C_INT64_T, C_NULL_PTR, C_PTR")
    text += lines(f"USE FERRY_MPI_TYPES, ONLY : {handles}")
    text += lines("IMPLICIT NONE")
    text += lines(f"PRIVATE :: C_INT64_T, C_NULL_PTR, C_PTR, {handles}")
    for name in ("MPI_ADDRESS_KIND", "MPI_COUNT_KIND"):
        text += lines(f"INTEGER, PARAMETER, PRIVATE :: {name} = {constants.FORTRAN_ONLY[name]}")
    text += lines("INTEGER, PARAMETER :: MPIX_QUEUE_KIND = C_INT64_T")
    text += lines(f"{_QUEUE}, PARAMETER :: MPIX_QUEUE_NULL = 0")
    text += lines("TYPE(C_PTR), PARAMETER :: MPIX_PREQUEST_NULL = C_NULL_PTR")
    for number, name in enumerate(_QUEUE_TYPES):
        text += lines(f"INTEGER, PARAMETER :: MPIX_QUEUE_{name} = {number}")
    for procedure in table.additions():
        text += lines(f"INTERFACE MPIX_{procedure.name}") + _interface(procedure, False, described)
        if procedure.has_handle:
            text += _interface(procedure, True, described)
        text += lines("END INTERFACE")
    return text + lines("END MODULE ferry_mpix")


def modules():
    return {"ferry_mpix.f90": _module(True), "ferry_mpix_addresses.f90": _module(False)}


def source():
    text = ("// Made by mpi/fortran/generate.py: the Fortran procedures of mpi/fortran/mpix.txt.\n"
            "#include \"mpi/fortran/mpix_by_hand.h\"\n#include \"mpi/fortran/sections.h\"\n\n"
            "namespace ferry::fortran {\n\n")
    return {"calls_mpix.cc": text + "\n".join(map(definitions.addition, table.additions())) +
                             "\n}  // namespace ferry::fortran\n"}


def names():
    """The names that the library shows of them."""
    found = []
    for procedure in table.additions():
        low = f"mpix_{procedure.name.lower()}"
        found += [low, f"{low}_", f"{low}__", low.upper()]
        found += [f"{low}_f08_"] if procedure.has_handle else []
        found += [f"{low}_f08ts_"] if procedure.has_buffer else []
    return sorted(found)

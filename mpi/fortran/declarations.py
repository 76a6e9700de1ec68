"""mpif.h and the module `mpi`: constants, and an explicit interface of each procedure."""

import constants
import table
from text import lines

_TYPES = {"int": "INTEGER", "index": "INTEGER", "weights": "INTEGER", "status": "INTEGER",
            "f90status": "INTEGER", "logical": "LOGICAL", "string": "CHARACTER*(*)",
            "strings": "CHARACTER*(*)", "strings2": "CHARACTER*(*)",
            "aint": "INTEGER(KIND=SELECTED_INT_KIND(18))",
            "count": "INTEGER(KIND=SELECTED_INT_KIND(18))",
            "offset": "INTEGER(KIND=SELECTED_INT_KIND(18))",
            "address": "INTEGER(KIND=SELECTED_INT_KIND(18))"}

# C's double. DOUBLE PRECISION is the same, but for options that give REAL eight bytes: they give it 16.
_DOUBLE = "REAL(KIND=SELECTED_REAL_KIND(15))"

# Callbacks that a program may pass or call; the kinds of their arguments.
_AINT, _INT, _LOGICAL = _TYPES["aint"], "INTEGER", "LOGICAL"
PREDEFINED_CALLBACKS = (
    [(f"{kind}_{name}_FN", "copy", _AINT) for kind in ("COMM", "TYPE", "WIN")
     for name in ("DUP", "NULL_COPY")] +
    [(f"{kind}_NULL_DELETE_FN", "delete", _AINT) for kind in ("COMM", "TYPE", "WIN")] +
    [("DUP_FN", "copy", _INT), ("NULL_COPY_FN", "copy", _INT), ("NULL_DELETE_FN", "delete", _INT)] +
    [("CONVERSION_FN_NULL", "conversion", _AINT)])

# Procedures whose last form is also one with TYPE(C_PTR), under one generic name.
WITH_C_PTR = ["Alloc_mem", "Win_allocate", "Win_allocate_shared", "Win_shared_query"]

# Procedures that only the modules have.
BY_MODULE = ["Sizeof", "Status_f082f", "Status_f2f08"]


def _type(argument):
    if argument.is_handle:
        return "INTEGER"
    return _TYPES[argument.kind]


def _declared(arguments, with_c_ptr):
    """The declarations of the arguments in an interface body, those of one type in one."""
    text = ""
    by_type = {}
    for argument in arguments:
        name = argument.name.upper()
        if argument.is_callback:
            by_type.setdefault("EXTERNAL", []).append(name)
        elif argument.kind in ("buffer", "detached"):
            # Each is a comment to the compilers of the others.
            text += f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n!DIR$ IGNORE_TKR {name}\n"
            text += f"!DEC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n"
            by_type.setdefault("REAL", []).append(f"{name}(*)")
        else:
            if argument.kind in ("status", "f90status"):
                shape = "(8,*)" if argument.length else "(8)"
            elif argument.kind == "strings2":
                shape = "(COUNT,*)"
            elif argument.length == "3,n":
                shape = "(3,*)"
            else:
                shape = "(*)" if argument.length or argument.kind == "strings" else ""
            with_pointer = with_c_ptr and argument.kind == "address"
            type_ = "TYPE(C_PTR)" if with_pointer else _type(argument)
            by_type.setdefault(type_, []).append(f"{name}{shape}")
    # COUNT, an INTEGER, stands before an array of that length.
    for type_ in sorted(by_type, key=lambda one: one.startswith("CHARACTER")):
        text += lines(f"{type_} {','.join(by_type[type_])}")
    return text


def _body(procedure, prefix, with_c_ptr=False):
    name = f"{prefix}{procedure.name.upper()}" + ("_CPTR" if with_c_ptr else "")
    arguments = list(procedure.small)
    names = [argument.name.upper() for argument in arguments]
    if procedure.has_ierror:
        names.append("IERROR")
    result = {"": None, "double": _DOUBLE, "aint": _AINT}[procedure.result]
    what = "FUNCTION" if result else "SUBROUTINE"
    found = [lines(f"{what} {name}({','.join(names)})")]
    if with_c_ptr:
        found.append(lines("USE, INTRINSIC :: ISO_C_BINDING, ONLY : C_PTR"))
    if result:
        found.append(lines(f"{result} {name}"))
    found.append(_declared(arguments, with_c_ptr))
    if procedure.has_ierror:
        found.append(lines("INTEGER IERROR"))
    found.append(lines(f"END {what}"))
    return "".join(found)


def _callback_body(name, what, kind):
    if what == "copy":
        arguments = [("OLDOBJ", _INT), ("KEYVAL", _INT), ("EXTRA_STATE", kind), ("VALUE_IN", kind),
                     ("VALUE_OUT", kind), ("FLAG", _LOGICAL), ("IERROR", _INT)]
    elif what == "delete":
        arguments = [("OBJ", _INT), ("KEYVAL", _INT), ("VALUE_IN", kind), ("EXTRA_STATE", kind),
                     ("IERROR", _INT)]
    else:
        arguments = [("USERBUF", "CHARACTER"), ("DATATYPE", _INT), ("COUNT", _INT),
                     ("FILEBUF", "CHARACTER"), ("POSITION", _AINT), ("EXTRA_STATE", _AINT),
                     ("IERROR", _INT)]
    text = lines(f"SUBROUTINE {name}({','.join(name for name, _ in arguments)})")
    text += "".join(lines(f"{type_} {name}" + ("(*)" if type_ == "CHARACTER" else ""))
                    for name, type_ in arguments)
    return text + lines("END SUBROUTINE")


def interfaces(prefix, procedures):
    """The interface blocks of procedures, under MPI_ or PMPI_."""
    text = lines("INTERFACE")
    generics = ""
    for procedure in procedures:
        if procedure.name in BY_MODULE or procedure.name in WITH_C_PTR:
            continue
        text += _body(procedure, prefix)
    if prefix == "MPI_":
        for name, what, kind in PREDEFINED_CALLBACKS:
            text += _callback_body(f"MPI_{name}", what, kind)
    text += lines("END INTERFACE")
    for procedure in procedures:
        if procedure.name in WITH_C_PTR:
            generics += lines(f"INTERFACE {prefix}{procedure.name.upper()}")
            generics += _body(procedure, prefix) + _body(procedure, prefix, True)
            generics += lines("END INTERFACE")
    return text + generics


def _parameters(constants_h, handles_h):
    text = ""
    for name, value in constants.FORTRAN_ONLY.items():
        text += lines(f"INTEGER {name}") + lines(f"PARAMETER ({name}={value})")
    numbers = constants.integers(constants_h)
    numbers += [(name, number) for name, _, number in constants.handles(handles_h)]
    for name, value in numbers:
        text += lines(f"INTEGER {name}") + lines(f"PARAMETER ({name}={value})")
    text += lines(f"{_TYPES['offset']} MPI_DISPLACEMENT_CURRENT")
    text += lines("PARAMETER (MPI_DISPLACEMENT_CURRENT=-1)")
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        text += lines(f"LOGICAL {name}") + lines(f"PARAMETER ({name}=.FALSE.)")
    return text


def _sentinels():
    return "".join(lines(declaration) + lines(f"COMMON /{constants.common(name)}/ {name}")
                   for name, declaration, _ in constants.SENTINELS)


def _only_with_integers_of_4_bytes():
    """A kind that there is if INTEGER has four bytes: else compilers name the constant, and show the
    line. Under -fdefault-integer-8 all interfaces below would have eight too, and take any call."""
    name = "MPI_INTEGERS_HAVE_4_BYTES"
    return (lines(f"INTEGER(KIND=4*(1/(1+ABS(KIND(0)-4)))) {name}") +
            lines(f"PARAMETER ({name}=4)"))


def mpif_h(constants_h, handles_h):
    return ("! mpif.h - MPI 5.0 for Fortran, in fixed and in free form: constants, and an\n"
            "! explicit interface of each procedure, so that compilers check calls.\n"
            "! New programs better `use mpi`, which has the interfaces of all PMPI_x, too:\n"
            "! here they would double the time of compiling each unit.\n"
            + _only_with_integers_of_4_bytes() + _parameters(constants_h, handles_h) + _sentinels()
            + interfaces("MPI_", table.procedures())
            + interfaces("PMPI_", [one for one in table.procedures() if one.result]))


def types():
    """The module of the handles' types and of MPI_Status, which mpi and mpi_f08 share. It has nothing
    that a compiler makes code of: what it declares is in the library."""
    names = [f"MPI_{kind}" for kind in table.HANDLES]
    text = lines("MODULE FERRY_MPI_TYPES") + lines("IMPLICIT NONE")
    for name in names:
        text += lines(f"TYPE, BIND(C) :: {name}") + lines("INTEGER :: MPI_VAL")
        text += lines(f"END TYPE {name}")
    text += lines("TYPE, BIND(C) :: MPI_Status")
    text += lines("INTEGER :: MPI_SOURCE, MPI_TAG, MPI_ERROR") + lines("INTEGER :: MPI_INTERNAL(5)")
    text += lines("END TYPE MPI_Status")
    for operator, suffix, symbol in (("==", "EQ", "equal"), ("/=", "NE", "differ")):
        text += lines(f"INTERFACE OPERATOR({operator})")
        for name in names:
            text += lines(f"PURE FUNCTION FERRY_{suffix}_{name}(A,B) BIND(C,NAME='ferry_mpi_{symbol}_')")
            text += lines(f"IMPORT {name}") + lines(f"TYPE({name}), INTENT(IN) :: A,B")
            text += lines(f"LOGICAL FERRY_{suffix}_{name}") + lines("END FUNCTION")
        text += lines("END INTERFACE")
    text += lines("INTERFACE")
    for prefix in ("MPI_", "PMPI_"):
        for name, first, second in (("Status_f2f08", "F_STATUS", "F08_STATUS"),
                                    ("Status_f082f", "F08_STATUS", "F_STATUS")):
            text += lines(f"SUBROUTINE {prefix}{name}({first},{second},IERROR)")
            text += lines("IMPORT MPI_Status")
            for argument, intent in ((first, "IN"), (second, "OUT")):
                text += lines(f"INTEGER, INTENT({intent}) :: F_STATUS(8)" if argument == "F_STATUS" else
                              f"TYPE(MPI_Status), INTENT({intent}) :: F08_STATUS")
            text += lines("INTEGER, OPTIONAL, INTENT(OUT) :: IERROR") + lines("END SUBROUTINE")
        # Of any type, kind and rank: the size of an element stands in the descriptor.
        text += lines(f"SUBROUTINE {prefix}SIZEOF(X,SIZE,IERROR) BIND(C,NAME='ferry_mpi_sizeof_')")
        text += lines("TYPE(*), DIMENSION(..), INTENT(IN) :: X")
        text += lines("INTEGER, INTENT(OUT) :: SIZE") + lines("INTEGER, OPTIONAL :: IERROR")
        text += lines("END SUBROUTINE")
    return text + lines("END INTERFACE") + lines("END MODULE")


def module_mpi():
    return (types() + lines("MODULE MPI") + lines("USE FERRY_MPI_TYPES") + lines("IMPLICIT NONE")
            + "      INCLUDE 'mpif.h'\n"
            + interfaces("PMPI_", [one for one in table.procedures() if not one.result])
            + lines("END MODULE"))

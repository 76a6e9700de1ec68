"""The procedures of mpif.h and of the module `mpi` in C++: they convert the arguments, and call
C's.

Each is there twice: mpi_x_ calls MPI_x, so that a tool in C sees it, and pmpi_x_ calls PMPI_x.
Those that their line of the table does not make alone stand in by_hand.h, and are handed the
function to call.
"""

import constants
import declarations
import table

# Callbacks, attributes, arguments of programs, truth values in arrays whose length MPI knows, lengths
# without the final zero.
BY_HAND = {
    "Alltoallw", "Alltoallw_init", "Attr_get", "Attr_put",
    "Cart_get", "Cart_sub", "Comm_create_errhandler", "Comm_create_keyval",
    "Comm_get_attr", "Comm_set_attr", "Comm_spawn", "Comm_spawn_multiple",
    "File_create_errhandler", "Grequest_start", "Ialltoallw", "Ineighbor_alltoallw", "Info_get",
    "Info_get_string", "Keyval_create",
    "Neighbor_alltoallw", "Neighbor_alltoallw_init", "Op_create", "Pcontrol", "Register_datarep",
    "Session_create_errhandler", "Session_get_nth_pset", "Type_create_keyval",
    "Type_get_attr", "Type_get_contents", "Type_set_attr", "Win_create_errhandler",
    "Win_create_keyval", "Win_get_attr", "Win_set_attr",
}
# Nothing of C is called.
NO_CALL = {"F_sync_reg", "Sizeof", "Status_f082f", "Status_f2f08"}
# C has arguments of main() in front.
MAIN = {"Init": "nullptr, nullptr", "Init_thread": "nullptr, nullptr", "Info_create_env": "0, nullptr"}

_TYPES = {"aint": "MPI_Aint*", "count": "MPI_Count*", "offset": "MPI_Offset*", "buffer": "void*",
          "address": "void*", "detached": "void*", "string": "char*", "strings": "char*", "strings2": "char*"}
_RESULTS = {"": "void", "double": "double", "aint": "MPI_Aint"}


def _is_string(argument):
    return argument.kind in ("string", "strings", "strings2")


def _type(argument):
    return "Function*" if argument.is_callback else _TYPES.get(argument.kind, "int*")


def parameters(procedure):
    """As a Fortran compiler passes them: addresses, and behind them the lengths of strings."""
    found = [(_type(argument), argument.name) for argument in procedure.small]
    if procedure.has_ierror:
        found.append(("int*", "ierror"))
    return found + [("size_t", f"{argument.name}_length") for argument in procedure.small
                    if _is_string(argument)]


def _handle(argument):
    return f"MPI_{argument.kind}"


def _null(argument):
    return {"Datatype": "MPI_DATATYPE_NULL"}.get(argument.kind, f"MPI_{argument.kind.upper()}_NULL")


def _by_table(procedure, call):
    """The body of a function: before the call, its arguments, after it."""
    before, given, after, if_good = [], [], [], []
    for argument in procedure.small:
        name = argument.name
        reads, writes = argument.direction != "out", argument.direction != "in"
        local = f"c_{name}"
        if argument.is_handle and argument.length:
            before.append(f"Handles<{_handle(argument)}> {local}({name}, *{argument.length});")
            given.append(f"{local}.get()")
            if writes:
                after.append(f"{local}.Store({name});")
        elif argument.is_handle and writes:
            start = f"HandleOf<{_handle(argument)}>(*{name})" if reads else _null(argument)
            before.append(f"{_handle(argument)} {local} = {start};")
            given.append(f"&{local}")
            after.append(f"*{name} = NumberOf({local});")
        elif procedure.name == "Cancel":  # C takes the address of what it only reads
            before.append(f"{_handle(argument)} {local} = HandleOf<{_handle(argument)}>(*{name});")
            given.append(f"&{local}")
        elif argument.is_handle:
            given.append(f"HandleOf<{_handle(argument)}>(*{name})")
        elif argument.kind == "buffer":
            given.append(f"Buffer({name})")
        elif argument.kind == "address":
            given.append(name)
        elif argument.kind == "detached":
            # Its type is wrong in these interfaces, so nothing is given back in it
            # (MPI 5.0, section 3.6).
            before += [f"void* {local} = nullptr;", f"static_cast<void>({name});"]
            given.append(f"&{local}")
        elif argument.kind == "weights":
            given.append(f"Weights({name})")
        elif argument.kind == "status":
            given.append(f"{'Statuses' if argument.length else 'Status'}({name})")
        elif argument.kind == "logical" and argument.length:
            before.append(f"Logicals {local}({name}, *{argument.length});")
            given.append(f"{local}.get()")
        elif argument.kind == "logical" and writes:
            before.append(f"int {local} = 0;")
            given.append(f"&{local}")
            after.append(f"*{name} = Logical({local});")
        elif argument.kind == "logical":
            given.append(f"IsTrue(*{name})")
        elif argument.kind == "index" and argument.length:
            before.append("*outcount = 0;")
            given.append(name)
            after.append(f"CountFromOne({name}, *outcount);")
        elif argument.kind == "index":
            before.append(f"int {local} = MPI_UNDEFINED;")
            given.append(f"&{local}")
            after.append(f"*{name} = FromOne({local});")
        elif argument.kind == "string" and writes:
            before.append(f"char {local}[{argument.most}];")
            given.append(local)
            if_good.append(f"Fill({name}, {name}_length, {local});")
        elif argument.kind == "string":
            # Keys and values of info objects have no blanks in front either.
            kind = "StrippedString" if procedure.name.startswith("Info_") else "String"
            before.append(f"const {kind} {local}({name}, {name}_length);")
            given.append(f"{local}.get()")
        elif argument.length == "3,n":
            given.append(f"reinterpret_cast<int(*)[3]>({name})")
        elif argument.length or writes:
            given.append(name)
        else:
            given.append(f"*{name}")
    arguments = ", ".join(([MAIN[procedure.name]] if procedure.name in MAIN else []) + given)
    if procedure.result:
        return f"  return {call}({arguments});\n"
    text = "".join(f"  {line}\n" for line in before)
    text += f"  const int code = {call}({arguments});\n"
    text += "".join(f"  {line}\n" for line in after)
    if if_good:
        text += "  if (code == MPI_SUCCESS) {\n"
        text += "".join(f"    {line}\n" for line in if_good) + "  }\n"
    return text + "  Give(ierror, code);\n"


def _function(procedure, prefix):
    low = f"{prefix}{procedure.name}".lower()
    signature = ", ".join(" ".join(one) for one in parameters(procedure))
    text = f'extern "C" FERRY_SHOWN {_RESULTS[procedure.result]} {low}_({signature}) {{\n'
    call = f"{prefix}{procedure.name}"
    if procedure.name == "F_sync_reg":
        text += "  static_cast<void>(buf);\n"
    elif procedure.name in BY_HAND:
        names = "".join(f", {name}" for _, name in parameters(procedure))
        text += f"  {procedure.name}({call}{names});\n"
    else:
        text += _by_table(procedure, call)
    text += "}\n"
    text += f'FERRY_NAMES("{low}", "{low.upper()}", "{low}_");\n'
    if procedure.name in declarations.WITH_C_PTR:
        text += f'FERRY_NAMES("{low}_cptr", "{low.upper()}_CPTR", "{low}_");\n'
        text += f'FERRY_NAME("{low}_cptr_", "{low}_");\n'
    return text


_HEAD = """\
// Made by mpi/fortran/generate.py: the Fortran procedures of mpi/fortran/calls/{group}.txt.
#include "mpi/fortran/binding.h"
#include "mpi/fortran/by_hand.h"

namespace ferry::fortran {{

"""


def sources():
    found = {}
    for group in table.groups():
        text = _HEAD.format(group=group)
        for procedure in table.procedures():
            if procedure.group == group and (procedure.name not in NO_CALL or
                                             procedure.name == "F_sync_reg"):
                for prefix in ("MPI_", "PMPI_"):
                    text += _function(procedure, prefix) + "\n"
        found[f"calls_{group}.cc"] = text + "}  // namespace ferry::fortran\n"
    found["by_hand.h"] = _by_hand()
    return found


def _by_hand():
    text = ("// Made by mpi/fortran/generate.py: the procedures that are written by hand. `call` is the\n"
            "// function of C, as MPI_x or as PMPI_x.\n#pragma once\n\n"
            "#include \"mpi/fortran/binding.h\"\n\nnamespace ferry::fortran {\n\n")
    for procedure in table.procedures():
        if procedure.name in BY_HAND:
            signature = "".join(f", {' '.join(one)}" for one in parameters(procedure))
            text += f"void {procedure.name}(decltype(&MPI_{procedure.name}) call{signature});\n"
    return text + "\n}  // namespace ferry::fortran\n"


def names():
    """The names that the library shows: of each procedure four, under MPI_ and PMPI_; the predefined
    callbacks; the sentinels."""
    found = []
    for procedure in table.procedures():
        if procedure.name in NO_CALL and procedure.name != "F_sync_reg":
            continue
        forms = [procedure.name]
        if procedure.name in declarations.WITH_C_PTR:
            forms.append(f"{procedure.name}_cptr")
        for form in forms:
            for prefix in ("mpi_", "pmpi_"):
                low = f"{prefix}{form}".lower()
                found += [low, f"{low}_", f"{low}__", low.upper()]
    for name, _, _ in declarations.PREDEFINED_CALLBACKS:
        low = f"mpi_{name}".lower()
        found += [low, f"{low}_", f"{low}__", low.upper()]
    found += ["ferry_mpi_equal_", "ferry_mpi_differ_", "ferry_mpi_sizeof_"]
    found += [f"{prefix}status_{form}_" for prefix in ("mpi_", "pmpi_") for form in ("f2f08", "f082f")]
    found += [f"{constants.common(name)}_".lower() for name, _, _ in constants.SENTINELS]
    return sorted(found)


def exports():
    return {"exports.lds": "{\n  global:\n" + "".join(f"    {name};\n" for name in names())
                           + "  local: *;\n};\n"}

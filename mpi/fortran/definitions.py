"""The procedures of mpif.h and of the modules `mpi` and `mpi_f08` in C++: they convert the
arguments, and call C's.

Each is there twice: mpi_x_ calls MPI_x, so that a tool in C sees it, and pmpi_x_ calls PMPI_x. Both
hand the function to the one that converts: X(call, ...), which is made from the line of the table,
or stands in by_hand.h. Those of mpi_f08 have arguments of the same form, so they are second names
(mpi_x_f08_); but that buffers are described (mpi_x_f08ts_): sections.h makes addresses of them.
"""

import constants
import declarations
import f08
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
    "Palltoallw_init", "Pneighbor_alltoallw_init", "Pschedule_init",
}
# Nothing of C is called.
NO_CALL = {"F_sync_reg", "Sizeof", "Status_f082f", "Status_f2f08"}
# C has arguments of main() in front.
MAIN = {"Init": "nullptr, nullptr", "Init_thread": "nullptr, nullptr", "Info_create_env": "0, nullptr"}

_TYPES = {"aint": "MPI_Aint*", "count": "MPI_Count*", "offset": "MPI_Offset*", "buffer": "void*",
          "address": "void*", "detached": "void*", "string": "char*", "strings": "char*",
          "strings2": "char*", "queue": "MPIX_Queue*", "stream": "const void*",
          "prequest": "MPIX_Prequest*"}
_RESULTS = {"": "void", "double": "double", "aint": "MPI_Aint"}


def _is_string(argument):
    return argument.kind in ("string", "strings", "strings2")


def _type(argument):
    return "Function*" if argument.is_callback else _TYPES.get(argument.kind, "int*")


def parameters(procedure, large=False, types=None):
    """As a Fortran compiler passes them: addresses, and behind them the lengths of strings. `types`:
    those of some kinds that are others than usual."""
    arguments = procedure.form(large)
    found = [((types or {}).get(argument.kind) or _type(argument), argument.name)
             for argument in arguments]
    if procedure.has_ierror:
        found.append(("int*", "ierror"))
    return found + [("size_t", f"{argument.name}_length") for argument in arguments
                    if _is_string(argument)]


def _handle(argument):
    return f"MPI_{argument.kind}"


def _null(argument):
    return {"Datatype": "MPI_DATATYPE_NULL"}.get(argument.kind, f"MPI_{argument.kind.upper()}_NULL")


def _by_table(procedure, large):
    """The body of a function: before the call, its arguments, after it."""
    before, given, after, if_good = [], [], [], []
    for argument in procedure.form(large):
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
        elif argument.kind in ("address", "stream"):
            given.append(name)
        elif argument.kind == "queue_type":
            given.append(f"static_cast<MPIX_Queue_type>(*{name})")
        elif argument.kind == "detached":
            # Its type is wrong in mpif.h and in `mpi`, so nothing is given back in it there
            # (MPI 5.0, section 3.6).
            before.append(f"void* {local} = nullptr;")
            given.append(f"&{local}")
            after += [f"if ({name} != nullptr) {{", f"  *{name} = Detached({local});", "}"]
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
        return f"  return call({arguments});\n"
    text = "".join(f"  {line}\n" for line in before)
    text += f"  const int code = call({arguments});\n"
    text += "".join(f"  {line}\n" for line in after)
    if if_good:
        text += "  if (code == MPI_SUCCESS) {\n"
        text += "".join(f"    {line}\n" for line in if_good) + "  }\n"
    return text + "  Give(ierror, code);\n"


# ---- The function that converts -----------------------------------------------------------------


_INNER = {"detached": "void**"}


def _name(procedure, large):
    return procedure.name + ("_c" if large else "")


def _calls(procedure):
    return procedure.name not in NO_CALL


def _call(procedure, large):
    """The parameter that is the function of C."""
    prefix = "MPIX_" if procedure.is_added else "MPI_"
    return f"decltype(&{prefix}{_name(procedure, large)})", "call"


def _converter(procedure, large):
    if procedure.name in BY_HAND or not _calls(procedure):
        return ""
    name = _name(procedure, large)
    given = [_call(procedure, large)] + parameters(procedure, large, _INNER)
    signature = ", ".join(" ".join(one) for one in given)
    result = _RESULTS[procedure.result]
    return f"FERRY_INLINE {result} {name}({signature}) {{\n{_by_table(procedure, large)}}}\n"


_OF_SPAWN = {"argv", "array_of_argv", "array_of_errcodes"}


def _takes_sentinels(procedure, large):
    """Returns True if an argument may be a constant that is recognised by its address (sentinels.h)."""
    return any(one.kind in ("buffer", "status", "weights") or one.name in _OF_SPAWN
               for one in procedure.form(large))


def _shown(procedure, large, prefix, symbol, types, function):
    """A procedure that hands C's function and its own arguments to another."""
    signature = ", ".join(" ".join(one) for one in parameters(procedure, large, types))
    result = _RESULTS[procedure.result]
    if _calls(procedure) and _takes_sentinels(procedure, large):
        text = f"FERRY_BOUND_PROCEDURE({result}, {symbol}_, ({signature})) {{\n"
    else:
        text = f'extern "C" FERRY_SHOWN {result} {symbol}_({signature}) {{\n'
    if not _calls(procedure):
        return text + "  static_cast<void>(buf);\n}\n"  # MPI_F_sync_reg
    names = [f"{prefix}{_name(procedure, large)}"]
    unused = [one.name for one in procedure.form(large) if one.kind == "detached" and not types]
    names += ["nullptr" if name in unused else name for _, name in parameters(procedure, large)]
    text += "".join(f"  static_cast<void>({name});\n" for name in unused)
    return text + f"  {'return ' if procedure.result else ''}{function}({', '.join(names)});\n}}\n"


# ---- Buffers that are described -----------------------------------------------------------------

# A buffer's count (or counts) and datatype.
_OF_BUFFER = {"buf": ("count", "datatype"), "buffer": ("count", "datatype"),
              "sendbuf": ("sendcount", "sendtype"), "recvbuf": ("recvcount", "recvtype"),
              "inbuf": ("incount", "datatype"), "outbuf": ("outcount", "datatype"),
              "origin_addr": ("origin_count", "origin_datatype"),
              "result_addr": ("result_count", "result_datatype")}
_ADDRESS = {"Get_address", "Free_mem", "Abi_get_fortran_booleans", "Abi_set_fortran_booleans"}
_ITEM = {"Fetch_and_op", "Compare_and_swap"}


def _has_blocks(procedure, buffer):
    """Whether the count is that for each of several ranks."""
    name = procedure.name.lower()
    if "alltoall" in name:
        return True
    if "scatter" in name and "reduce" not in name:
        return buffer == "sendbuf"
    return "gather" in name and buffer == "recvbuf"


def use_of(procedure, argument, large):
    """(way, name of the count or None, name of the datatype or None) of a buffer; see sections.h."""
    arguments = {one.name: one for one in procedure.form(large)}
    count, datatype = _OF_BUFFER.get(argument.name, ("", ""))
    counted, typed = count in arguments, datatype in arguments
    if procedure.name in _ADDRESS or procedure.name.endswith(("_begin", "_end")) and not typed:
        return "kAddress", None, None
    if procedure.name in _ITEM:
        return "kItem", None, "datatype"
    if f"{argument.name[:4]}types" in arguments or (
            any(one.kind == "Op" for one in procedure.arguments) and procedure.group != "windows"):
        return "kWhole", None, None
    if "partitions" in arguments:
        # A datatype that both buffers have cannot describe one of them.
        return ("kPlaced", None, datatype) if typed else ("kPiece", None, None)
    if not counted and typed and f"{argument.name[:4]}counts" in arguments:
        return "kPlaced", None, datatype
    if counted and typed:
        return ("kBlocks" if _has_blocks(procedure, argument.name) else "kOne"), count, datatype
    if procedure.name in ("Pack", "Unpack", "Pack_external", "Unpack_external"):
        return "kWhole", None, None
    return "kPiece", None, None


def _refuses(procedure, large):
    """What a call does that cannot use a section: what it gives back are null handles."""
    text = ""
    about = None
    for argument in procedure.form(large):
        if argument.is_handle and argument.direction == "out":
            text += f"    *{argument.name} = NumberOf({_null(argument)});\n"
        elif argument.kind in ("Comm", "Win", "File", "Session") and not argument.length:
            about = about or f"HandleOf<{_handle(argument)}>(*{argument.name})"
    text += f"    Give(ierror, RefuseSection({about or 'MPI_COMM_SELF'}));\n    return;\n"
    return text


def _described(procedure, large):
    """The function X_f08ts, which makes addresses of described buffers."""
    name = _name(procedure, large)
    types = {"buffer": "const Array*"}
    given = [_call(procedure, large)] + parameters(procedure, large, types)
    text = f"FERRY_INLINE void {name}_f08ts({', '.join(' '.join(one) for one in given)}) {{\n"
    handed = {name: name for _, name in parameters(procedure, large)}
    local_names, after = [], ""
    for argument in procedure.form(large):
        if argument.kind != "buffer":
            continue
        way, count, datatype = use_of(procedure, argument, large)
        if way == "kAddress":
            handed[argument.name] = f"{argument.name}->base"
            continue
        local = f"given_{argument.name}"
        fields = [f".way = Way::{way}"]
        # The standard's procedures of partitioned communication do not say it.
        is_over = "async" not in argument.flags and procedure.group != "partitioned"
        writes = argument.direction != "in"
        if is_over:
            fields.append(".is_over = true")
        if writes:
            fields.append(".is_written = true")
        if any(one.kind == "Op" for one in procedure.arguments):
            fields.append(".operates = true")
        if "root" in argument.flags:
            fields += [".root = root", ".comm = comm"]
        kind = "MPI_Count" if large else "int"
        text += f"  Buffered<{kind}> {local}(*{argument.name}, {{{', '.join(fields)}}}, "
        text += f"{count or 'nullptr'}, {datatype or 'nullptr'});\n"
        handed[argument.name] = f"{local}.address()"
        if count:
            handed[count] = f"{local}.count()"
        if datatype:
            handed[datatype] = f"{local}.datatype()"
        local_names.append(local)
        if is_over and writes:
            after += f"  {local}.Finish();\n"
    if local_names:
        text += f"  if ({' || '.join(f'!{one}.is_good()' for one in local_names)}) [[unlikely]] {{\n"
        text += _refuses(procedure, large) + "  }\n"
    return text + f"  {name}(call, {', '.join(handed.values())});\n{after}}}\n"


# ---- All of them --------------------------------------------------------------------------------


def _persistent_names(procedure):
    """Open MPI 4 has persistent collectives under other names."""
    text = ""
    if procedure.group in ("collectives_init", "neighbours") and procedure.name.endswith("_init"):
        for prefix in ("mpi", "pmpi"):
            low, other = (f"{one}_{procedure.name.lower()}" for one in (prefix, f"{prefix}x"))
            text += f'FERRY_NAMES("{other}", "{other.upper()}", "{low}_");\n'
            text += f'FERRY_NAME("{other}_", "{low}_");\nFERRY_NAME("{other}_f08_", "{low}_");\n'
    return text


def _procedure(procedure, with_sections):
    """mpif.h's, that of `mpi`, and those of mpi_f08 without large counts."""
    text = _converter(procedure, False)
    in_f08 = procedure in f08.procedures()
    detaches = any(one.kind == "detached" for one in procedure.arguments)
    for prefix in ("MPI_", "PMPI_"):
        low = f"{prefix}{procedure.name}".lower()
        text += _shown(procedure, False, prefix, low, {}, procedure.name)
        text += f'FERRY_NAMES("{low}", "{low.upper()}", "{low}_");\n'
        if procedure.name in declarations.WITH_C_PTR:
            text += f'FERRY_NAMES("{low}_cptr", "{low.upper()}_CPTR", "{low}_");\n'
            text += f'FERRY_NAME("{low}_cptr_", "{low}_");\n'
        if in_f08 and detaches:
            text += _shown(procedure, False, prefix, f"{low}_f08", _INNER, procedure.name)
        elif in_f08:
            text += f'FERRY_NAME("{low}_f08_", "{low}_");\n'
    if not with_sections:
        return text + _persistent_names(procedure)
    return text + (_of_described(procedure, False) if in_f08 else "")


def _of_described(procedure, large):
    if not procedure.has_buffer:
        return ""
    name = _name(procedure, large)
    if not _calls(procedure):
        return "".join(f'FERRY_NAME("{prefix}{name}_f08ts_", "{prefix}{name}_");\n'.lower()
                       .replace("ferry_name", "FERRY_NAME") for prefix in ("mpi_", "pmpi_"))
    return _described(procedure, large) + "".join(
        _shown(procedure, large, prefix, f"{prefix}{name}_f08ts".lower(),
               {"buffer": "const Array*"}, f"{name}_f08ts") for prefix in ("MPI_", "PMPI_"))


def _of_large(procedure):
    """That of mpi_f08 with large counts."""
    name = _name(procedure, True)
    return _converter(procedure, True) + "".join(
        _shown(procedure, True, prefix, f"{prefix}{name}_f08".lower(), _INNER, name)
        for prefix in ("MPI_", "PMPI_")) + _of_described(procedure, True)


def addition(procedure):
    """One of Ferry's additions, which has no second form for tools."""
    low = f"mpix_{procedure.name}".lower()
    text = _converter(procedure, False)
    text += _shown(procedure, False, "MPIX_", low, {}, procedure.name)
    text += f'FERRY_NAMES("{low}", "{low.upper()}", "{low}_");\n'
    if procedure.has_handle:
        text += f'FERRY_NAME("{low}_f08_", "{low}_");\n'
    if procedure.has_buffer:
        text += _described(procedure, False)
        text += _shown(procedure, False, "MPIX_", f"{low}_f08ts", {"buffer": "const Array*"},
                       f"{procedure.name}_f08ts")
    return text


_HEAD = """\
// Made by mpi/fortran/generate.py: the Fortran procedures of mpi/fortran/calls/{group}.txt.
#include "mpi/fortran/by_hand.h"{sections}

namespace ferry::fortran {{

"""


def sources(with_sections):
    """All procedures; or those for Open MPI's modules: its mpi_f08 has no large counts, and hands over
    addresses."""
    found = {}
    sections = '\n#include "mpi/fortran/sections.h"' if with_sections else ""
    for group in table.groups():
        text = _HEAD.format(group=group, sections=sections)
        for procedure in table.procedures():
            if procedure.group == group and (_calls(procedure) or procedure.name == "F_sync_reg"):
                text += _procedure(procedure, with_sections) + "\n"
                if with_sections and f08.has_large(procedure):
                    text += _of_large(procedure) + "\n"
        found[f"calls_{group}.cc"] = text + "}  // namespace ferry::fortran\n"
    return found


def _by_hand(procedures, about, include):
    text = (f"// Made by mpi/fortran/generate.py: {about}\n// that are written by hand. `call` is the "
            f"function of C.\n#pragma once\n\n{include}#include \"mpi/fortran/binding.h\"\n\n"
            "namespace ferry::fortran {\n\n")
    for procedure in procedures:
        if procedure.name not in BY_HAND:
            continue
        for large in (False, True) if f08.has_large(procedure) else (False,):
            given = [_call(procedure, large)] + parameters(procedure, large)
            text += f"void {_name(procedure, large)}({', '.join(' '.join(one) for one in given)});\n"
    return text + "\n}  // namespace ferry::fortran\n"


def by_hand():
    return {"by_hand.h": _by_hand(table.procedures(), "the procedures of MPI", ""),
            "mpix_by_hand.h": _by_hand(table.additions(), "those of Ferry's additions",
                                       "#include <mpix.h>\n\n")}


def _c_names():
    """The conversions that C has: c_names.cc."""
    forms = [f"{'Type' if kind == 'Datatype' else kind}_{way}" for kind in table.HANDLES
             for way in ("c2f", "f2c")]
    forms += ["Status_" + way for way in ("c2f", "f2c", "c2f08", "f082c", "f2f08", "f082f")]
    return [prefix + form for prefix in ("MPI_", "PMPI_") for form in forms]


def names():
    """The names that the library shows: of each procedure four, under MPI_ and PMPI_; the predefined
    callbacks; the sentinels; the conversions for C; those of mpi_f08."""
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
    return sorted(found + _c_names() + f08.names())

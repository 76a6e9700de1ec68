#!/usr/bin/env python3
"""generate.py WHAT FOLDER HEADERS [NUMBERS]: writes the functions of libraries with another binary
interface.

WHAT: calls (the functions of libmpi_abi that are called, and the definitions of those that are made
from their declarations, for all families), or a family, of which NUMBERS has the constants: their
pairs with the standard's; or FAMILY/include: its mpi.h.
HEADERS: the folder of the standard's C headers. They are the table of the functions: what is done
with an argument follows from its type and its name.
"""

import pathlib
import re
import sys

# The number of a predefined handle that the standard has no more: libmpi_abi has none from here to
# 1024.
_FIRST_REMOVED = 0x380

HANDLES = ["Comm", "Group", "Datatype", "Errhandler", "Op", "Info", "Win", "Request", "Session",
           "Message"]

# Datatypes that have another name there.
_OTHER_NAMES = {"MPI_REAL2": "MPIX_C_FLOAT16"}

# Functions in by_hand.cc, callbacks.cc, attributes.cc and tools.cc.
BY_HAND = set("""
    Init Init_thread Session_init Get_version Get_library_version Abi_get_version
    Get_processor_name Error_string Comm_get_name Type_get_name Win_get_name Pcontrol
    Op_create Op_create_c Grequest_start Register_datarep Register_datarep_c
    Comm_create_errhandler File_create_errhandler Session_create_errhandler Win_create_errhandler
    Comm_create_keyval Type_create_keyval Win_create_keyval Keyval_create
    Comm_get_attr Type_get_attr Win_get_attr Attr_get
    Buffer_attach Buffer_attach_c Buffer_detach Buffer_detach_c
    Comm_attach_buffer Comm_attach_buffer_c Comm_detach_buffer Comm_detach_buffer_c
    Session_attach_buffer Session_attach_buffer_c Session_detach_buffer Session_detach_buffer_c
    Type_create_struct Type_create_struct_c Type_create_darray Type_create_darray_c
    Type_get_contents Type_get_contents_c
    Group_translate_ranks Info_get_nthkey Open_port Lookup_name
    Comm_toint Errhandler_toint File_toint Group_toint Info_toint Message_toint Op_toint
    Request_toint Session_toint Type_toint Win_toint Comm_fromint Errhandler_fromint File_fromint
    Group_fromint Info_fromint Message_fromint Op_fromint Request_fromint Session_fromint
    Type_fromint Win_fromint
    T_event_get_info T_event_register_callback T_event_handle_free T_event_set_dropped_handler
    T_cvar_handle_alloc T_pvar_handle_alloc T_event_handle_alloc
""".split())

# Functions of which a handle behind a pointer is read and written; of others it is only written, and
# may hold anything before: an address that nothing has, where handles are addresses.
_READS = re.compile(r".*_free$|Wait|Test|Start|Cancel$|Type_commit$|.*_disconnect$|"
                    r".*File_close$|Session_finalize$")
# Of these, the message is, and not the request.
_READS_MESSAGE = re.compile(r"I?[Mm]recv(_c)?$")

# Numbers that are constants, by the argument's name: the group of constants (numbers.h).
_GROUPS = {"split_type": "CommTypes", "order": "Orders", "typeclass": "TypeClasses",
           "lock_type": "Locks", "whence": "Seeks", "required": "Threads", "provided": "Threads",
           "combiner": "Combiners", "result": "Comparisons", "comm_keyval": "Keyvals",
           "type_keyval": "Keyvals", "win_keyval": "Keyvals", "keyval": "Keyvals",
           "verbosity": "Verbosities", "bind": "Binds", "scope": "Scopes",
           "var_class": "PvarClasses", "cb_safety": "CbSafeties", "ordering": "SourceOrders"}
# By the names of the constants. A group of bits is translated bit by bit.
_CONSTANTS = {
    "CommTypes": r"MPI_COMM_TYPE_\w+", "Orders": r"MPI_ORDER_\w+",
    "TypeClasses": r"MPI_TYPECLASS_\w+", "Locks": r"MPI_LOCK_\w+", "Seeks": r"MPI_SEEK_\w+",
    "Threads": r"MPI_THREAD_\w+", "Combiners": r"MPI_COMBINER_\w+",
    "Comparisons": r"MPI_(IDENT|CONGRUENT|SIMILAR|UNEQUAL)",
    "Topologies": r"MPI_(CART|GRAPH|DIST_GRAPH)", "Distributions": r"MPI_DISTRIBUTE_(?!DFLT)\w+",
    "Keyvals": r"MPI_(KEYVAL_INVALID|TAG_UB|IO|HOST|WTIME_IS_GLOBAL|APPNUM|LASTUSEDCODE|"
               r"UNIVERSE_SIZE|WIN_BASE|WIN_DISP_UNIT|WIN_SIZE|WIN_CREATE_FLAVOR|WIN_MODEL)",
    "Flavors": r"MPI_WIN_FLAVOR_\w+", "Models": r"MPI_WIN_(UNIFIED|SEPARATE)",
    "Errors": r"MPI_(T_)?ERR_(?!LASTCODE)\w+|MPI_SUCCESS",
    "Asserts": r"MPI_MODE_(NOCHECK|NOPRECEDE|NOPUT|NOSTORE|NOSUCCEED)",
    "FileModes": r"MPI_MODE_(?!NO(CHECK|PRECEDE|PUT|STORE|SUCCEED))\w+",
    "Verbosities": r"MPI_T_VERBOSITY_\w+", "Binds": r"MPI_T_BIND_\w+", "Scopes": r"MPI_T_SCOPE_\w+",
    "PvarClasses": r"MPI_T_PVAR_CLASS_\w+", "CbSafeties": r"MPI_T_CB_REQUIRE_\w+",
    "SourceOrders": r"MPI_T_SOURCE_(ORDERED|UNORDERED)",
}
_RANKS = {"dest", "source", "root", "target_rank", "rank", "rank_source", "rank_dest"}
_WEIGHTS = {"weights", "sourceweights", "destweights"}
_TAGS = {"tag", "sendtag", "recvtag"}
_CODES = {"errorcode", "errorclass", "err"}
# Of these, MPI_IN_PLACE may stand for a buffer.
_COLLECTIVES = {"collectives", "collectives_init", "neighbours"}


# ---- Reading -------------------------------------------------------------------------------------


def _without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


class Parameter:
    def __init__(self, text):
        match = re.match(r"(.*?)(\w+)((?:\[\d*\])*)$", text)
        self.type, self.name, self.array = match[1].strip(), match[2], match[3]
        self.is_const = self.type.startswith("const ")
        base = self.type.removeprefix("const ")
        self.stars = base.count("*") + (1 if self.array else 0)
        self.base = base.replace("*", "").strip()
        self.handle = self.base[4:] if self.base[4:] in HANDLES else None

    @property
    def declaration(self):
        """As a program of the other interface passes it."""
        text = self.type
        if self.handle:
            text = text.replace(self.base, "TheirHandle")
        elif self.base == "MPI_Status":
            text = text.replace("MPI_Status", "Status")
        elif self.base == "MPI_File":
            text = text.replace("MPI_File", "File")
        elif self.base in ("MPI_T_cb_safety", "MPI_T_source_order"):
            text = text.replace(self.base, "int")
        space = "" if text.endswith("*") else " "
        return f"{text}{space}{self.name}{self.array}"


class Function:
    def __init__(self, result, name, parameters, header):
        self.result, self.name, self.header = result, name, header
        self.parameters = [] if parameters == ["void"] else [Parameter(one) for one in parameters
                                                             if one != "..."]

    def has(self, name):
        return any(one.name == name for one in self.parameters)


def functions(headers):
    found = []
    for path in sorted(headers.glob("*.h")):
        text = re.sub(r"\s+", " ", _without_comments(path.read_text(encoding="ascii")))
        for result, name, parameters in re.findall(r"FERRY_MPI\((\w+), (\w+), \((.*?)\)\);", text):
            if result != "result":
                found.append(Function(result, name, parameters.split(", "), path.stem))
    return found


def _rows(path):
    """{name: the words after it}"""
    lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
    return {line.split()[0]: [word for word in line.split()[1:] if word != "newer"]
            for line in lines if not line.startswith("#")}


# ---- numbers.h -----------------------------------------------------------------------------------


# Constants that stand alone: k + Their + their words.
_SINGLE = """
    ANY_SOURCE ANY_TAG PROC_NULL ROOT IN_PLACE BUFFER_AUTOMATIC UNWEIGHTED WEIGHTS_EMPTY STATUS_IGNORE ERR_LASTCODE
    T_PVAR_ALL_HANDLES BSEND_OVERHEAD DISTRIBUTE_DFLT_DARG DISPLACEMENT_CURRENT MAX_ERROR_STRING
    MAX_INFO_KEY MAX_LIBRARY_VERSION_STRING MAX_OBJECT_NAME MAX_PORT_NAME MAX_PROCESSOR_NAME
""".split()


def _handles(headers):
    """[(name, kind, number)] of the standard's interface."""
    text = (headers / "handles.h").read_text(encoding="ascii")
    return [(name, kind, int(value, 16)) for name, kind, value in
            re.findall(r"#define (MPI_\w+)\s+\(\(MPI_(\w+)\)0x(\w+)\)", text)]


def objects(headers, path):
    """numbers.h and more of a family in which handles are addresses of objects: rows of
    objects, their sizes, and the numbers of handles in Fortran."""
    rows = {name: words for name, words in _rows(path).items() if len(words) == 3}
    known = {name: (kind, value) for name, kind, value in _handles(headers)}
    if not rows:
        return "", {}
    text, fortran = "", {}
    for name in rows:
        if name not in known:  # a datatype that the standard has no more
            known[name] = ("Datatype", _FIRST_REMOVED + len(known))
            words = "".join(word.capitalize() for word in name[4:].split("_"))
            text += f"inline constexpr uintptr_t k{words}Handle = {known[name][1]:#x};\n"
        if rows[name][2] != "-":
            fortran.setdefault(known[name][0], []).append((known[name][1], rows[name][2], name))
    for kind in HANDLES + ["File"]:
        pairs = fortran.get(kind) or [(value, value, name) for name, (of, value) in known.items()
                                      if of == kind][:1]
        text += f"inline constexpr HandlePair k{kind}Fortran[] = {{\n"
        text += "".join(f"    {{{value:#x}, {number}}},  // {name}\n"
                        for value, number, name in pairs) + "};\n"
    lines = "".join(f"FERRY_OBJECT({words[0]}, {known[name][1]:#x}, {words[1]})\n"
                    for name, words in rows.items())
    typed = "".join(f"FERRY_CONSTANT({name.lower()}, {_inner_name(name)}, {words[2]})\n"
                    for name, words in rows.items() if words[2] != "-")
    for other, name in _OTHER_TYPED.items():
        typed += f"FERRY_CONSTANT({other}, {other}, {rows[name][2]})\n"
    made = f"// Made by mpi/foreign/generate.py of {path}.\n"
    return text, {"objects.inc": made + lines, "typed_constants.inc": made + typed}


# Names that Open MPI's module mpi_f08 has beside those of its C.
_OTHER_TYPED = {"mpi_c_complex": "MPI_C_FLOAT_COMPLEX", "mpi_cxx_complex": "MPI_CXX_FLOAT_COMPLEX",
                "mpi_long_long_int": "MPI_LONG_LONG"}


def _inner_name(name):
    """That of a constant's variable in Open MPI's C."""
    return re.sub(r"(mpi_u?int\d+)_t$", r"\1", name.lower())


def numbers_h(headers, path):
    rows = _rows(path)
    numbers = {name: words[0] for name, words in rows.items() if len(words) == 1}
    text = (f"// Made by mpi/foreign/generate.py of {path}: constants of the standard's\n"
            "// binary interface and the numbers that they have in another one.\n#pragma once\n\n"
            "#include \"mpi/foreign/pairs.h\"\n\nnamespace ferry::foreign {\n\n")
    for kind in HANDLES:
        lines = "".join(f"    {{{value:#x}, {numbers[_OTHER_NAMES.get(name, name)]}}},  // {name}\n"
                        for name, of, value in _handles(headers)
                        if of == kind and _OTHER_NAMES.get(name, name) in numbers
                        and name != "MPI_INTEGER16")  # which is null there
        if lines:
            text += f"inline constexpr HandlePair k{kind}Pairs[] = {{\n{lines}}};\n"
    for group, pattern in _CONSTANTS.items():
        text += f"inline constexpr Pair k{group}[] = {{\n"
        text += "".join(f"    {{{name}, {numbers[name]}}},\n" for name in numbers
                        if re.fullmatch(pattern, name))
        text += "};\n"
    for name in _SINGLE:
        words = "".join(word.capitalize() for word in name.split("_"))
        if "MPI_" + name in numbers:
            text += f"inline constexpr int kTheir{words} = {numbers['MPI_' + name]};\n"
    more, files = objects(headers, path)
    return {"numbers.h": f"{text}{more}\n}}  // namespace ferry::foreign\n", **files}


# ---- mpi.h of the other interface ----------------------------------------------------------------


_STATUS = re.compile(r"typedef struct MPI_Status \{.*?\} MPI_Status;", re.S)


def header(headers, path):
    """The standard's header with the numbers, the handles and the status (`status`, a struct's
    members) of a family in which handles are addresses of objects: what is compiled with it calls
    the family's library. Constants that the family lacks are as in the standard."""
    rows = _rows(path)
    kinds = {name: kind for name, kind, _ in _handles(headers)}
    order = [*re.findall(r'#include "ferry_mpi/(\w+)\.h"',
                         (headers.parent / "mpi.h").read_text(encoding="ascii"))]
    order.sort(key=lambda name: name != "handles")  # the first: the others include it
    text = "".join((headers / f"{name}.h").read_text(encoding="ascii") for name in order)
    text = re.sub(r'#include ".*"\n', "", _without_comments(text))
    text = _STATUS.sub("typedef struct MPI_Status {\n  int MPI_SOURCE;\n  int MPI_TAG;\n  int MPI_ERROR;"
                       "\n  int cancelled;\n  size_t size_bytes;\n} MPI_Status;", text)
    text = re.sub(r"\(\((MPI_\w+_function)\*\)[01]\)", "", text)

    def constant(match):
        name, space, value = match.groups()
        words = rows.get(name, [])
        if len(words) == 3:
            return f"#define {name}{space}((MPI_{kinds[name]})(void*){words[0]})\n"
        if len(words) == 1:
            cast = re.fullmatch(r"\((\(.*\))-?\w+\)", value.strip())
            return f"#define {name}{space}" + (f"({cast[1]}{words[0]})\n" if cast else f"{words[0]}\n")
        if name.endswith("_FN"):
            return f"#define {name}{space}OMPI_C_{name}\n"
        return match[0]

    text = re.sub(r"#define (MPI_\w+)( +)(.*)\n", constant, text)
    text = re.sub(r"(MPI_\w+)(\s*= )-?\w+",
                  lambda match: match[1] + match[2] + rows[match[1]][0] if match[1] in rows
                  else match[0], text)
    declared = "".join(f"extern char {words[0]}[];\n" for words in rows.values() if len(words) == 3)
    declared += "".join(
        f"int OMPI_C_MPI_{kind}{what}_COPY_FN(MPI_{handle}, int, void*, void*, void*, int*);\n"
        .replace("DUP_COPY_FN", "DUP_FN") for kind, handle in _CALLBACK_KINDS
        for what in ("NULL", "DUP"))
    declared += "".join(f"int OMPI_C_MPI_{kind}NULL_DELETE_FN(MPI_{handle}, int, void*, void*);\n"
                        for kind, handle in _CALLBACK_KINDS)
    return {"include/mpi.h": "// Made by mpi/foreign/generate.py: the standard's functions with the types and\n"
                             f"// constants of {path}.\n#pragma once\n\n#include <stddef.h>\n"
                             f"#define FERRY_MPI_OF_{pathlib.Path(path).parent.name.upper()} 1\n"
                             f'#include <stdint.h>\n\nextern "C" {{\n{text}\n{declared}}}\n'}


_CALLBACK_KINDS = [("", "Comm"), ("COMM_", "Comm"), ("TYPE_", "Datatype"), ("WIN_", "Win")]


# ---- Functions -----------------------------------------------------------------------------------


def _count_of(function):
    return next(one.name for one in function.parameters if one.name in ("count", "incount"))


def _peers(function, parameter):
    if "eighbor" in function.name:
        return f"NeighboursOf(comm).{'out' if parameter.name == 'sendtypes' else 'in'}"
    return "Peers(comm)"


class Body:
    """What a function does before the call, with what arguments it calls, and what it does after."""

    def __init__(self):
        self.before, self.arguments, self.after = [], [], []

    def wrap(self, kind, parameter, more=""):
        local = f"our_{parameter.name}"
        self.before.append(f"{kind} {local}({parameter.name}{more});")
        self.arguments.append(f"{local}.get()")
        return local

    def give(self, kind, parameter, more=""):
        self.after.append(f"{self.wrap(kind, parameter, more)}.Give();")


def _handle(function, parameter, body):
    name, kind = parameter.name, parameter.base
    if parameter.stars == 0:
        body.arguments.append(f"Ours<{kind}>({name})")
    elif parameter.array or parameter.is_const:
        if name in ("sendtypes", "recvtypes"):
            count = _peers(function, parameter)
            if name == "sendtypes" and "eighbor" not in function.name:
                count = f"IsInPlace(sendbuf) ? 0 : {count}"
        elif name == "array_of_info":
            count = "IsRoot(comm, root) ? count : 0"
        else:
            count = _count_of(function)
        if parameter.is_const:
            body.wrap(f"const HandlesIn<{kind}>", parameter, f", {count}")
        else:
            body.give(f"HandlesInOut<{kind}>", parameter, f", {count}")
    elif (_READS_MESSAGE.match(function.name) and name == "message"
          or _READS.match(function.name)):
        body.give(f"HandleInOut<{kind}>", parameter)
    else:
        body.give(f"HandleOut<{kind}>", parameter)


def _number(function, parameter, body):
    name = parameter.name
    group = _GROUPS.get(name)
    if name == "status":
        group = "Topologies"
    if parameter.stars == 0:
        if name == "errorcode" and function.name == "Abort":
            body.arguments.append(name)
        elif name in _RANKS:
            body.arguments.append(f"OurRank({name})")
        elif name in _TAGS:
            body.arguments.append(f"OurTag({name})")
        elif name in _CODES:
            body.arguments.append(f"OurCode({name})")
        elif name in ("assert", "amode"):
            bits = "kAsserts" if name == "assert" else "kFileModes"
            body.arguments.append(f"OurBits({bits}, {name})")
        elif group:
            cast = {"cb_safety": "static_cast<MPI_T_cb_safety>({})"}.get(name, "{}")
            body.arguments.append(cast.format(f"Ours(k{group}, {name})"))
        else:
            body.arguments.append(name)
        return
    body.arguments.append(name)
    if parameter.is_const or name == "newrank":
        return
    if name in ("rank_source", "rank_dest") or (name, function.name) == ("source",
                                                                         "Status_get_source"):
        body.after.append(f"Translate(code, {name}, TheirRank);")
    elif (name, function.name) == ("tag", "Status_get_tag"):
        body.after.append(f"Translate(code, {name}, TheirTag);")
    elif name in _CODES:
        body.after.append(f"Translate(code, {name}, TheirCode);")
    elif name == "amode":
        body.after.append(f"Translate(code, {name}, [](int bits) {{ return TheirBits(kFileModes, bits); }});")
    elif group and function.name.endswith("free_keyval") or function.name == "Keyval_free":
        body.arguments[-1] = f"our_{name}.get()"
        body.before.append(f"KeyvalInOut our_{name}({name});")
        body.after.append(f"our_{name}.Give();")
    elif group:
        body.after.append(f"Translate(code, {name}, [](int number) {{ return Theirs(k{group}, number); }});")


def _argument(function, parameter, body):
    name = parameter.name
    if parameter.handle:
        _handle(function, parameter, body)
    elif parameter.base == "MPI_Status":
        if parameter.array:
            body.give("StatusesOut", parameter, f", {_count_of(function)}")
        elif parameter.is_const:
            body.wrap("const StatusIn", parameter)
        elif function.name.startswith("Status_set_"):
            body.give("StatusInOut", parameter)
        else:
            body.give("StatusOut", parameter)
    elif parameter.base == "MPI_File":
        if parameter.stars == 0:
            body.arguments.append(f"OurFile({name})")
        elif _READS.match(function.name):
            body.give("FileInOut", parameter)
        else:
            body.before.append(f"MPI_File our_{name} = MPI_FILE_NULL;")
            body.arguments.append(f"{name} == nullptr ? nullptr : &our_{name}")
            body.after.append(f"if ({name} != nullptr) {{\n    *{name} = TheirFile(our_{name});\n  }}")
    elif parameter.base == "MPI_T_source_order":
        body.before.append(f"MPI_T_source_order our_{name} = MPI_T_SOURCE_ORDERED;")
        body.arguments.append(f"{name} == nullptr ? nullptr : &our_{name}")
        body.after.append(f"if ({name} != nullptr) {{\n    *{name} = Theirs(kSourceOrders, our_{name});\n  }}")
    elif parameter.base in ("int", "MPI_T_cb_safety") and name not in _WEIGHTS:
        _number(function, parameter, body)
    elif parameter.base == "void" and name in ("sendbuf", "recvbuf", "inbuf", "inoutbuf") and \
            function.header in _COLLECTIVES:
        body.arguments.append(f"OurBuffer({name})")
    elif name in _WEIGHTS:
        body.arguments.append(f"OurWeights({name})")
    elif parameter.base == "MPI_T_pvar_handle" and parameter.stars == 0:
        body.arguments.append(f"OurPvarHandle({name})")
    elif (name, function.name) == ("disp", "File_set_view"):
        body.arguments.append(f"OurDisplacement({name})")
    else:
        body.arguments.append(name)


def _definition(function):
    body = Body()
    for parameter in function.parameters:
        _argument(function, parameter, body)
    parameters = ", ".join(one.declaration for one in function.parameters)
    call = f"abi.{function.name}({', '.join(body.arguments)})"
    text = f"FERRY_FOREIGN({function.result}, {function.name}, ({parameters or 'void'})) {{\n"
    if function.result != "int":
        return text + f"  return {call};\n}}\n"
    if not body.after:
        text += "".join(f"  {line}\n" for line in body.before)
        return text + f"  return TheirCode({call});\n}}\n"
    text += "".join(f"  {line}\n" for line in body.before)
    text += f"  const int code = {call};\n"
    text += "".join(f"  {line}\n" for line in body.after)
    return text + "  return TheirCode(code);\n}\n"


def calls(headers):
    everything = functions(headers)
    found = {}
    for header in sorted({one.header for one in everything}):
        text = (f"// Made by mpi/foreign/generate.py of {header}.h.\n"
                "#include \"mpi/foreign/convert.h\"\n\nnamespace ferry::foreign {\n\n")
        for function in everything:
            if function.header == header and function.name not in BY_HAND:
                text += _definition(function) + "\n"
                if header in ("collectives_init", "neighbours") and function.name.endswith("_init"):
                    text += f"FERRY_PERSISTENT({function.name})\n\n"
        found[f"calls_{header}.cc"] = text + "}  // namespace ferry::foreign\n"
    members = "".join(f"  decltype(&PMPI_{one.name}) {one.name};\n" for one in everything)
    found["calls.h"] = (
        "// Made by mpi/foreign/generate.py: the functions of libmpi_abi.\n#pragma once\n\n"
        "#include <mpi.h>\n\nnamespace ferry::foreign {\n\n"
        f"struct Calls {{\n{members}}};\n\n}}  // namespace ferry::foreign\n")
    names = "".join(f"    \"PMPI_{one.name}\",\n" for one in everything)
    found["names.inc"] = f"// Made by mpi/foreign/generate.py, in the order of Calls.\n{names}"
    return found


def main(arguments):
    if len(arguments) != (3 if arguments[:1] == ["calls"] else 4):
        sys.exit("usage: generate.py calls FOLDER HEADERS | FAMILY FOLDER HEADERS NUMBERS")
    folder, headers = pathlib.Path(arguments[1]), pathlib.Path(arguments[2])
    if arguments[0] == "calls":
        files = calls(headers)
    else:
        family, _, is_header = arguments[0].partition("/")
        files = {f"{family}/{path}": content for path, content in
                 (header if is_header else numbers_h)(headers, arguments[3]).items()}
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])

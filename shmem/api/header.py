"""Writes the public headers: shmem.h, pshmem.h, shmemx.h, mpp/shmem.h and the parts in ferry_shmem/."""

import dataclasses

import table
import text
from families import DEPRECATED, FAMILIES
from parts import (
    MPP_HEAD, PARTS, PSHMEM_HEAD, QUEUES_PART, SHMEM_HEAD, SHMEMX_HEAD, SHMEMX_TYPES,
)

OPEN = """#ifdef __cplusplus
extern "C" {
#endif
"""
CLOSE = """#ifdef __cplusplus
}
#endif
"""
FORMAT_OFF = "/* clang-format off */\n"


def _guarded(guard, head, body):
    return f"{text.comment(head)}\n#ifndef {guard}\n#define {guard}\n\n{body.strip()}\n\n#endif /* {guard} */\n"


def _guard(path):
    return "FERRY_" + "".join(c.upper() if c.isalnum() else "_" for c in path) + "_"


# Promises of a declaration to the compiler beyond its type.
_TAILS = {"shmem_global_exit": " FERRY_SHMEM_NORETURN;"}


def _declarations(families, twins=False):
    blocks = []
    for family in families:
        lines = [] if twins else [text.comment(_title(family) + ": " + family.doc)]
        for function in table.functions([family]):
            name = function.twin if twins else function.name
            lines.append(text.prototype(function, name, _TAILS.get(function.name, ";")))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


# ---- Complex numbers of C in C++ ----

_OF_C = "ferry_shmem_c_complex"
_COMPLEX = "ferry_shmem_complex"


def _with_c_complex(function):
    """The function for complex numbers of C; None if it has no others."""
    parameters = tuple(dataclasses.replace(each, type=each.type.replace(_COMPLEX, _OF_C))
                       for each in function.parameters)
    return dataclasses.replace(function, parameters=parameters) if parameters != function.parameters else None


def _c_complex_overload(function, name):
    """In C++, the function `name` for complex numbers of C, which are laid out as std::complex."""
    taken = _with_c_complex(function)
    arguments = [f"reinterpret_cast<{own.type}>({own.name})" if own != given else own.name
                 for own, given in zip(function.parameters, taken.parameters)]
    return _inline(name, taken, name, arguments)


def _c_complex(families, twins=False):
    overloads = [_c_complex_overload(function, function.twin if twins else function.name)
                 for function in table.functions(families) if _with_c_complex(function)]
    if not overloads:
        return ""
    return "\n".join(["#ifdef FERRY_SHMEM_C_COMPLEX", text.comment(
        "The calls above for complex numbers of C, which gcc and clang have in C++, too."), *overloads, "#endif"])


def _inline(name, function, called, arguments):
    action = "" if function.result == "void" else "return "
    head = text.call(f"inline {function.result} {name}", list(map(str, function.parameters)), " {")
    body = text.call(f"  {action}{called}", arguments, ";", indent=6)
    return f"{head}\n{body}\n}}"


def _title(family):
    """The family as a person speaks of it: shmem_TYPE_put, shmem_putSIZE, shmem_putmem."""
    if family.full_name:
        return family.full_name
    names = []
    if family.types:
        names.append(f"{family.prefix}TYPE_{family.stem}{family.suffix}")
    if any(size != "mem" for size in family.sizes):
        names.append(f"{family.prefix}{family.stem}SIZE{family.suffix}")
    if "mem" in family.sizes:
        names.append(f"{family.prefix}{family.stem}mem{family.suffix}")
    return ", ".join(names) or f"{family.prefix}{family.stem}{family.suffix}"


def _part(part):
    families = DEPRECATED if part.groups == ("deprecated",) else [
        family for family in FAMILIES if family.group in part.groups
    ]
    sections = []
    for group, title in zip(part.groups, part.titles):
        chosen = [family for family in families if family.group == group]
        sections.append(text.section(title) + "\n" + _declarations(chosen))
    includes = "\n".join(f'#include "{each}"' for each in part.includes)
    body = "\n\n".join([includes, FORMAT_OFF.strip(), OPEN.strip(), *sections, CLOSE.strip(),
                        _c_complex(families)])
    return _guarded(_guard("shmem_" + part.file), f"{part.file} - {part.head}", body)


# ---- C11: one macro for all types ----


def _constant(function):
    """Returns True if the argument that has the type is read only: then const objects are good, too."""
    pointer = next(p for p in function.parameters if p.name in ("source", "dest", "ivar", "ivars", "fetch"))
    return pointer.type.startswith("const ")


def _associations(functions):
    found = []
    for function in functions:
        for qualifier in ("", "const ") if _constant(function) else ("",):
            found.append(f"{qualifier}{function.element.c}*: {function.name}")
    return found


def _generic(generic):
    argument = "FERRY_SHMEM_SECOND" if generic.dispatches_on else "FERRY_SHMEM_FIRST"
    lines = [f"#define {generic.name}(...)", f"  _Generic({argument}(__VA_ARGS__),"]
    associations = _associations(generic.functions)
    if generic.with_context:
        lines.append("      shmem_ctx_t: _Generic(FERRY_SHMEM_SECOND(__VA_ARGS__),")
        lines += [f"          {each}," for each in _associations(generic.with_context)]
        lines.append("          default: ferry_shmem_no_such_type),")
    lines += [f"      {each}," for each in associations[:-1]]
    lines.append(f"      {associations[-1]})(__VA_ARGS__)")
    return text.macro(lines)


_ARGUMENTS = """
#define FERRY_SHMEM_FIRST(...) FERRY_SHMEM_FIRST_OF(__VA_ARGS__, 0)
#define FERRY_SHMEM_FIRST_OF(first, ...) (first)
#define FERRY_SHMEM_SECOND(...) FERRY_SHMEM_SECOND_OF(__VA_ARGS__, 0, 0)
#define FERRY_SHMEM_SECOND_OF(first, second, ...) (second)

/* Named in errors where a pointer has a type that the call behind a context does not take. */
struct ferry_shmem_no_such_type;
void ferry_shmem_no_such_type(struct ferry_shmem_no_such_type*);
""".strip()


def _generics(head):
    blocks = ['#include "types.h"', FORMAT_OFF.strip(), _ARGUMENTS]
    blocks += [_generic(generic) for generic in table.generics()]
    for name, (chosen, otherwise, _) in table.CHOSEN_BY_FIRST.items():
        kinds = [f"      {kind}: {function}," for kind, function in chosen.items()]
        blocks.append(text.macro([
            f"#define {name}(...)", "  _Generic(FERRY_SHMEM_FIRST(__VA_ARGS__),", *kinds,
            f"      default: {otherwise})(__VA_ARGS__)"]))
    return _guarded("FERRY_SHMEM_GENERICS_H_", head, "\n\n".join(blocks))


# ---- C++: one overload for each type ----


def _overload(name, function):
    return _inline(name, function, function.name, function.arguments().split(", "))


def _overloads(head):
    taken = {f.family.full_name: f.signature() for f in table.functions() if f.family.full_name}
    blocks = ['#include "types.h"', FORMAT_OFF.strip()]
    for generic in table.generics():
        for function in generic.functions + generic.with_context:
            if taken.get(generic.name) != function.signature():  # C's own has that one
                blocks.append(_overload(generic.name, function))
    blocks.append("#ifdef FERRY_SHMEM_C_COMPLEX")
    for generic in table.generics():
        taken = filter(None, map(_with_c_complex, generic.functions))
        blocks += [_overload(generic.name, function) for function in taken]
    blocks.append("#endif")
    by_name = {function.name: function for function in table.functions()}
    for name, (chosen, _, _) in table.CHOSEN_BY_FIRST.items():
        blocks += [_overload(name, by_name[function]) for function in chosen.values()]
    return _guarded("FERRY_SHMEM_OVERLOADS_H_", head, "\n".join(blocks))


# ---- All of them ----


def headers():
    """Path below include/ -> text."""
    files = {f"ferry_shmem/{part.file}": _part(part) for part in PARTS + (QUEUES_PART,)}
    files["ferry_shmem/generics.h"] = _generics(
        "generics.h - one name for all types, in C11: shmem_put(dest, source, n, pe) is shmem_long_put if `dest` points to long. Those of puts, gets, atomics and signals take a context as an optional first argument. See shmem.h.")
    files["ferry_shmem/overloads.h"] = _overloads(
        "overloads.h - one name for all types, in C++: functions in place of C11's macros (generics.h). See shmem.h.")
    includes = "\n".join(f'#include "ferry_shmem/{part.file}"' for part in PARTS)
    generic = """#ifdef __cplusplus
#include "ferry_shmem/overloads.h"
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "ferry_shmem/generics.h"
#endif"""
    files["shmem.h"] = _guarded(
        "FERRY_SHMEM_SHMEM_H_", SHMEM_HEAD, f'#include "ferry_shmem/types.h"\n{includes}\n\n{generic}')
    also = [family for family in FAMILIES if family.group == "also"]
    files["shmemx.h"] = _guarded("FERRY_SHMEM_SHMEMX_H_", SHMEMX_HEAD, "\n\n".join(
        ['#include "shmem.h"\n#include "ferry_shmem/queues.h"', SHMEMX_TYPES.strip(), OPEN.strip(), _declarations(also), CLOSE.strip()]))
    files["pshmem.h"] = _guarded("FERRY_SHMEM_PSHMEM_H_", PSHMEM_HEAD, "\n\n".join(
        ['#include "shmem.h"\n#include "shmemx.h"', FORMAT_OFF.strip(), OPEN.strip(),
         _declarations(FAMILIES + DEPRECATED, twins=True), CLOSE.strip(),
         _c_complex(FAMILIES + DEPRECATED, twins=True)]))
    files["mpp/shmem.h"] = _guarded("FERRY_SHMEM_MPP_SHMEM_H_", MPP_HEAD, '#include "../shmem.h"')
    return files


__all__ = ["headers"]

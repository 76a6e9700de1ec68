#!/usr/bin/env python3
"""cases.py WHAT SINGLES: writes, to the output, the cases that main.c runs.

WHAT: names (each C function), generics (each type of each generic name), complex (those of both that
take complex numbers, with those of C, for C++), tool (a library that takes
every function, counts its calls and goes on to its twin) or listing (the table as text, for
table_test). SINGLES is singles.inc.

What a family of functions has to do stands in families.h and its like; here is which of
them tests which, and with which operands. Of the table only names and types are used.
"""

import dataclasses
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path("shmem/api").resolve()))

import table  # noqa: E402

# The functions that main.c itself calls.
BEGIN_AND_END = {
    "shmem_init", "shmem_init_thread", "start_pes", "shmem_finalize", "shmem_global_exit",
    "shmemx_heap_preinit", "shmemx_heap_preinit_thread", "shmemx_heap_create",
    "shmemx_heap_postinit",
}

OF_BLOCKS = {  # family: macro, for types and sizes alike
    "put": "PUT", "get": "GET", "put_nbi": "PUT", "get_nbi": "GET", "iput": "IPUT", "iget": "IGET",
    "ibput": "IBPUT", "ibget": "IBGET", "put_signal": "PUT_SIGNAL", "put_signal_nbi": "PUT_SIGNAL",
}
OF_TEAMS = {"broadcast", "collect", "fcollect", "alltoall", "alltoalls"}
OLD_AMOS = {
    "old fetch": "FETCH", "old set": "SET", "old swap": "SWAP", "old cswap": "COMPARE_SWAP",
    "old finc": "FETCH_INC", "old inc": "INC", "old fadd": "FETCH_ADD", "old add": "ADD",
}
REDUCTIONS = {"and": "WIDE", "or": "WIDE", "xor": "WIDE", "max": "ORDERED", "min": "ORDERED",
              "sum": "TERM", "prod": "FACTOR"}
REAL_TYPES = ("float", "double", "long double")
COMPLEX_TYPES = ("ferry_shmem_complexf", "ferry_shmem_complexd")
OF_C = {"ferry_shmem_complexf": "float _Complex", "ferry_shmem_complexd": "double _Complex"}


def _bytes(element):
    return f"{element.bytes}" if element.bits_in_name else f"sizeof({element.c})"


def _value(element):
    return "REAL" if element.c in REAL_TYPES else "WIDE"


def _operand(element, of_integers):
    if element.c in COMPLEX_TYPES or element.c in OF_C.values():
        return "COMPLEX"
    return "REAL" if element.c in REAL_TYPES and of_integers != "ORDERED" else of_integers


def _wait(key):
    """The macro of a wait or test, and what it compares with."""
    match = re.fullmatch(r"(wait_until|test)(_all|_any|_some)?(_vector)?", key)
    if not match:
        return None
    stem = "WAIT" if match[1] == "wait_until" else "TEST"
    if not match[2]:
        return ("WAIT_UNTIL" if stem == "WAIT" else "TEST"), ""
    bound = "SHMEM_CMP_EQ, each" if match[3] else "SHMEM_CMP_GE, least"
    return stem + match[2].upper(), ", " + bound


def _line_on_queue(function, name):
    """The case of the call without a queue, by a macro that enqueues the call and waits for it."""
    line = _line(function, name, "enqueued_" + name)
    return line and (
        f"#define enqueued_{name}(...) end_of_queue({name}(__VA_ARGS__, stream_queue))\n{line}")


def _line(function, name, called):
    """The case `name`, which calls `function` by the name `called`; None if it has no family."""
    key, element = function.family.key.removesuffix("_on_queue"), function.element
    if element is None:
        return None
    context = "WITH_CONTEXT" if function.with_context else ""
    head = f"{name}, {called}"
    if key in OF_BLOCKS:
        return f"{OF_BLOCKS[key]}({head}, {context}, {element.c}, {_bytes(element)})"
    if key in ("p", "g"):
        macro = "G_INTO" if function.family.key == "g_on_queue" else key.upper()
        return f"{macro}({head}, {context}, {element.c}, {_value(element)})"
    if key.startswith("atomic_") or key in OLD_AMOS:
        macro = OLD_AMOS.get(key) or key[len("atomic_"):].upper()
        return f"{macro}({head}, {context}, {element.c}, {_value(element)})"
    old = key.startswith("old ")
    if key.removeprefix("old ") in OF_TEAMS:
        return f"{key.upper().replace(' ', '_')}({head}, {element.c}, {_bytes(element)})"
    match = re.fullmatch(r"(old )?(and|or|xor|max|min|sum|prod)_(reduce|to_all)", key)
    if match:
        macro, operation = "TO_ALL" if old else "REDUCE", match[2]
        operand = _operand(element, REDUCTIONS[operation])
        return f"{macro}({head}, {element.c}, {operand}, {operation.upper()}_OF)"
    if key in ("sum_inscan", "sum_exscan"):
        return f"{key[4:].upper()}({head}, {element.c}, {_operand(element, 'TERM')})"
    if key == "old wait":
        return f"WAIT({head}, {element.c})"
    macro, bound = _wait(key)
    return f"{macro}({head}, {element.c}{bound})"


def _singles(path):
    text = pathlib.Path(path).read_text(encoding="ascii")
    return re.findall(r"^(?:CASE|WAIT\w*)\((\w+)[,)]", text, re.M)


def _program(lines, names):
    entries = "\n".join(f'    {{"{name}", case_{name}}},' for name in names)
    return (
        '#include "tests/shmem/names/families_waits.h"\n\n' + "\n".join(lines)
        + f"\n\nconst struct Case kCases[] = {{\n{entries}\n}};\n"
        + f"const int kCaseCount = {len(names)};\n")


def names(singles):
    by_hand = set(_singles(singles))
    lines, run = [f'#include "{singles}"'], []
    for function in table.functions():
        if function.name in BEGIN_AND_END:
            continue
        line = (_line_on_queue(function, function.name) if function.family.group == "on queues"
                else _line(function, function.name, function.name))
        if (line is None) != (function.name in by_hand):
            sys.exit(f"cases.py: {function.name} has {'no case' if line is None else 'two cases'}")
        lines += [line] if line else []
        run.append(function.name)
    unknown = by_hand - {function.name for function in table.functions()}
    if unknown:
        sys.exit(f"cases.py: the table has no {', '.join(sorted(unknown))}")
    return _program(lines, run)


# The generic names without an element type: table.CHOSEN_BY_FIRST.
_CHOSEN_BY_FIRST = """
CASE(generic_shmem_team_sync) { CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0); }
CASE(generic_shmem_ctx_signal_set) {
  shmem_signal_set(ctx, signal_word, 4, other);
  settle();
  CHECK(*signal_word == 4);
  settle();
  shmem_signal_set(signal_word, 3, other);
  settle();
  CHECK(*signal_word == 3);
}
CASE(generic_shmem_ctx_signal_add) {
  shmem_signal_add(ctx, signal_word, 4, other);
  settle();
  CHECK(*signal_word == 4);
  settle();
  shmem_signal_add(signal_word, 3, other);
  settle();
  CHECK(*signal_word == 7);
}
"""


def generics(_):
    lines, run = [], []
    for generic in table.generics():
        for function in generic.functions + generic.with_context:
            name = "generic_" + function.name
            lines.append(_line(function, name, generic.name))
            run.append(name)
    return _program(lines + [_CHOSEN_BY_FIRST], run + re.findall(r"CASE\((\w+)\)", _CHOSEN_BY_FIRST))


def _with_c_complex(functions):
    """Those of them that take complex numbers, with those of C."""
    return [dataclasses.replace(f, element=dataclasses.replace(f.element, c=OF_C[f.element.c]))
            for f in functions if f.element and f.element.c in OF_C]


def complex_of_c(_):
    lines, run = [], []
    for function in _with_c_complex(table.functions()):
        make = _line_on_queue if function.family.group == "on queues" else _line
        called = [] if make is _line_on_queue else [function.name]
        lines.append(make(function, function.name, *called))
        run.append(function.name)
    for generic in table.generics():
        for function in _with_c_complex(generic.functions):
            name = "generic_" + function.name
            lines.append(_line(function, name, generic.name))
            run.append(name)
    return _program(lines, run)


def tool(_):
    """Every function taken by a definition that counts; report() names those never called."""
    functions = table.functions()
    lines = ["#include <pshmem.h>", "#include <stdio.h>", ""]
    lines += [f"static int calls[{len(functions)}];", ""]
    for i, function in enumerate(functions):
        action = "" if function.result == "void" else "return "
        lines += [
            f"{function.result} ({function.name})({function.signature()}) {{", f"  ++calls[{i}];",
            f"  {action}{function.twin}({function.arguments()});", "}"]
    name_list = ",\n    ".join(f'"{function.name}"' for function in functions)
    lines += ["", f"static const char* const kNames[] = {{\n    {name_list}}};", "",
              "__attribute__((destructor)) static void report(void) {",
              f"  for (int i = 0; i < {len(functions)}; ++i) {{", "    if (calls[i] == 0) {",
              '      printf("never called: %s\\n", kNames[i]);', "    }", "  }", "}"]
    return "\n".join(lines) + "\n"


def listing(_):
    """A line for each name: itself, its standard, its group; that of generic names is "generics"."""
    lines = [f"{f.name}\t{f.standard}\t{f.family.group}" for f in table.functions()]
    lines += [f"{g.name}\t{g.family.standard}\tgenerics" for g in table.generics()]
    lines += [f"{name}\t{by[2]}\tgenerics" for name, by in table.CHOSEN_BY_FIRST.items()]
    return "\n".join(lines) + "\n"


def main(arguments):
    makers = {"names": names, "generics": generics, "complex": complex_of_c, "tool": tool,
              "listing": listing}
    if len(arguments) != 2 or arguments[0] not in makers:
        sys.exit(f"usage: cases.py {'|'.join(makers)} SINGLES")
    print(makers[arguments[0]](arguments[1]), end="")


if __name__ == "__main__":
    main(sys.argv[1:])

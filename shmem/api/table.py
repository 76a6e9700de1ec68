"""The table of OpenSHMEM's functions: what everything else in this folder is made from.

A Family is one line of the standard: the functions that differ in nothing but their element type and
in whether they name a context. `functions()` spells them all out. Nothing here says what a function
does to memory: that is definitions.py's, and tests/shmem/names knows it by itself.
"""

import dataclasses
import re

from families import DEPRECATED, FAMILIES
from family import Family
from element_types import BYTES, SIZED, TYPES, ElementType


@dataclasses.dataclass(frozen=True)
class Parameter:
    type: str  # as C spells it: "const long*"
    name: str

    def __str__(self):
        return "..." if self.type == "..." else f"{self.type} {self.name}"


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: tuple
    family: Family
    element: object  # ElementType; None where the family has none
    with_context: bool

    @property
    def standard(self):
        return self.family.standard_of(self.element)

    @property
    def twin(self):
        """The name that tools call when they have taken the function's own."""
        return "p" + self.name

    def signature(self):
        return ", ".join(map(str, self.parameters)) or "void"

    def arguments(self):
        return ", ".join(parameter.name for parameter in self.parameters if parameter.type != "...")


def _name(family, element, with_context):
    context = "ctx_" if with_context else ""
    if element is None:
        return family.full_name or f"{family.prefix}{context}{family.stem}{family.suffix}"
    if element.bits_in_name:  # shmem_put64_signal, shmem_putmem_signal
        return f"{family.prefix}{context}{family.stem}{element.name}{family.suffix}"
    return f"{family.prefix}{context}{element.name}_{family.stem}{family.suffix}"


def _substitute(text, element):
    return re.sub(r"\bT\b", element.c, text) if element else text


def _parameters(family, element, with_context):
    texts = [each.strip() for each in family.parameters.split(",") if each.strip()]
    if with_context:
        texts.insert(0, "shmem_ctx_t ctx")
    parameters = []
    for text in texts:
        if text == "...":
            parameters.append(Parameter("...", ""))
            continue
        kind, _, name = _substitute(text, element).rpartition(" ")
        parameters.append(Parameter(kind, name))
    return tuple(parameters)


def _elements(family):
    if not family.types and not family.sizes:
        return [None]
    return [TYPES[name] for name in family.types] + [
        BYTES if size == "mem" else SIZED[size] for size in family.sizes
    ]


def _functions_of(family):
    for with_context in (False, True) if family.context else (False,):
        for element in _elements(family):
            yield Function(
                name=_name(family, element, with_context),
                result=_substitute(family.result, element),
                parameters=_parameters(family, element, with_context),
                family=family,
                element=element,
                with_context=with_context,
            )


def functions(families=None):
    """All C functions, in the order of the header."""
    if families is None:
        families = FAMILIES + DEPRECATED
    return [function for family in families for function in _functions_of(family)]


@dataclasses.dataclass(frozen=True)
class Generic:
    """A name without a type (C11; overloads in C++): one function for each distinct type of C."""

    name: str
    family: Family
    functions: tuple  # without a context
    with_context: tuple  # the same with one, or empty

    @property
    def dispatches_on(self):
        """Which argument, counted from 0 and without the context, has the type."""
        names = self.family.parameters.split(",")
        return next(i for i, text in enumerate(names) if re.search(r"\bT\b", text))


def generics():
    """All type-generic names but those of functions that have no element type (shmem_sync)."""
    found = []
    for family in FAMILIES + DEPRECATED:
        if not family.generic:
            continue
        distinct = {}
        for function in _functions_of(family):
            if not function.element.bits_in_name:
                key = (function.element.underlying, function.with_context)
                distinct.setdefault(key, function)
        found.append(
            Generic(
                name=f"shmem_{family.stem}{family.suffix}",
                family=family,
                functions=tuple(f for f in distinct.values() if not f.with_context),
                with_context=tuple(f for f in distinct.values() if f.with_context),
            )
        )
    return found


# Generic names that choose a whole function by the type of the first argument:
# name -> ({type: function}, the function for every other type, the standard's version).
CHOSEN_BY_FIRST = {
    "shmem_sync": ({"shmem_team_t": "shmem_team_sync"}, "shmem_sync", "1.5"),
    "shmem_signal_set": ({"shmem_ctx_t": "shmem_ctx_signal_set"}, "shmem_signal_set", "1.6"),
    "shmem_signal_add": ({"shmem_ctx_t": "shmem_ctx_signal_add"}, "shmem_signal_add", "1.6"),
}


def count(standard, group=None):
    return sum(
        function.standard == standard and group in (None, function.family.group)
        for function in functions()
    )


def count_generics(standard):
    return sum(generic.family.standard == standard for generic in generics()) + sum(
        version == standard for _, _, version in CHOSEN_BY_FIRST.values()
    )


__all__ = [
    "CHOSEN_BY_FIRST", "ElementType", "Function", "Generic", "Parameter", "count", "count_generics",
    "functions", "generics",
]

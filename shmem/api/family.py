"""A family of OpenSHMEM's functions: those that differ in the element type or the size.

In `parameters` and `result`, T is the element type. `doc` is the comment in the header.
"""

import dataclasses

# The standard that defines a function: "1.5", "1.6" (an addition of it), "deprecated" (1.5 still
# has it), or "also" (programs use it; no standard has it).


@dataclasses.dataclass(frozen=True)
class Family:
    group: str
    stem: str  # "put": shmem_long_put, shmem_put64, shmem_putmem
    parameters: str
    doc: str
    result: str = "void"
    suffix: str = ""  # behind the size: shmem_put64_nbi
    types: tuple = ()
    sizes: tuple = ()  # of functions that have a size in their name, in bits, or "mem": in bytes
    context: bool = False  # there is a shmem_ctx_ twin, whose first parameter is the context
    generic: bool = False  # C11 has it without a type
    standard: str = "1.5"
    more_types: tuple = ()
    more_standard: str = ""
    full_name: str = ""  # of the few that are not called shmem_...
    prefix: str = "shmem_"

    @property
    def key(self):
        """Names the family among all: deprecated ones share some stems with others."""
        old = "old " if self.standard == "deprecated" else ""
        return old + (self.full_name or self.stem + self.suffix)

    def standard_of(self, element):
        return self.more_standard if element and element.name in self.more_types else self.standard


BITS = (8, 16, 32, 64, 128)
WITH_BYTES = BITS + ("mem",)


def plain(group, standard="1.5"):
    def make(stem, result, parameters, doc, **more):
        return Family(group, stem, parameters, doc, result=result, standard=standard, **more)

    return make

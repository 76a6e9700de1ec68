"""The element types that names of OpenSHMEM contain, and the sets of them that its tables define."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ElementType:
    name: str  # in function names: "longlong"
    c: str  # "long long"
    underlying: str  # the type of C that it is on LP64 systems: what C11 tells apart
    bits_in_name: bool = False  # shmem_put64, shmem_putmem: the type is void
    bytes: int = 0  # of those


def _table(lines):
    types = {}
    for line in lines.strip().splitlines():
        name, c, underlying = (word.strip() for word in line.split("|"))
        types[name] = ElementType(name, c, underlying or c)
    return types


TYPES = _table(
    """
    float      | float                |
    double     | double               |
    longdouble | long double          |
    char       | char                 |
    schar      | signed char          |
    short      | short                |
    int        | int                  |
    long       | long                 |
    longlong   | long long            |
    uchar      | unsigned char        |
    ushort     | unsigned short       |
    uint       | unsigned int         |
    ulong      | unsigned long        |
    ulonglong  | unsigned long long   |
    int8       | int8_t               | signed char
    int16      | int16_t              | short
    int32      | int32_t              | int
    int64      | int64_t              | long
    uint8      | uint8_t              | unsigned char
    uint16     | uint16_t             | unsigned short
    uint32     | uint32_t             | unsigned int
    uint64     | uint64_t             | unsigned long
    size       | size_t               | unsigned long
    ptrdiff    | ptrdiff_t            | long
    complexf   | ferry_shmem_complexf |
    complexd   | ferry_shmem_complexd |
    """
)

SIZED = {bits: ElementType(str(bits), "void", "void", True, bits // 8) for bits in (8, 16, 32, 64, 128)}
BYTES = ElementType("mem", "void", "void", True, 1)


def _names(text):
    return tuple(text.split())


# Table 3: the standard types of puts and gets.
RMA = _names(
    "float double longdouble char schar short int long longlong uchar ushort uint ulong ulonglong "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff"
)
# Tables 4 to 6: standard, extended and bitwise atomics.
AMO = _names("int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff")
AMO_EXTENDED = ("float", "double") + AMO
AMO_BITWISE = _names("uint ulong ulonglong int32 int64 uint32 uint64")
# Table 10: reductions. Plain signed types have no bitwise ones.
REDUCE_BITWISE = _names(
    "uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size"
)
REDUCE_ORDERED = RMA
REDUCE_ARITHMETIC = RMA + ("complexd", "complexf")
# Table 12: waits and tests.
WAIT = AMO
# The deprecated functions'.
OLD_EXTENDED = _names("float double int long longlong")
OLD = _names("int long longlong")
TO_ALL_BITWISE = _names("short int long longlong")
TO_ALL_ORDERED = TO_ALL_BITWISE + ("float", "double", "longdouble")
TO_ALL_ARITHMETIC = TO_ALL_ORDERED + ("complexf", "complexd")

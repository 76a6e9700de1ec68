"""What Ferry declares of a vendor's library, and what the stand-ins for it offer, against the vendor's own headers.

The headers are read by the compiler: of each function that a table of Ferry's names, and of each that a stand-in has, a
program prints the number, kinds and sizes of the arguments, once as declared here and once as the vendor declares it.
"""

import functools
import os
import re
import subprocess
import tempfile

_ABI_SHAPE = "tests/gpu_backends/abi_shape.h"
_PRINT = """
#include <cstdio>
static void Print(const char* name, const std::vector<ferry::gpu::AbiType>& shape) {
  std::printf("%s", name);
  for (const ferry::gpu::AbiType& type : shape) {
    std::printf(" %d:%zu", static_cast<int>(type.kind), type.size_bytes);
  }
  std::printf("\\n");
}
int main() {
"""


class Vendor:
    """Where things of one vendor stand in this tree."""

    def __init__(self, name, kind, include, defines, stand_in, defined_as):
        self.name = name
        self.abi = f"gpu_backends/{name}/{name}_abi.h"
        self.api_header = f"gpu_backends/{name}/{name}_api.h"
        self.api_source = f"gpu_backends/{name}/{name}_api.cc"
        self.test = f"tests/gpu_backends/{name}_abi_test.cc"
        self.kind = kind  # of its struct of functions
        self.include = include
        self.defines = defines
        self.stand_in = stand_in
        self.stand_in_defines = defined_as


VENDORS = {
    # The define: cuda.h declares all variants of a function, by the names that the library exports.
    "cuda": Vendor("cuda", "CudaApi", "cuda.h", ["__CUDA_API_VERSION_INTERNAL"], "tests/fixtures/cuda/cuda_stand_in.h",
                   ["FERRY_FIXTURE_CUDA_MAJOR=13"]),
    "hip": Vendor("hip", "HipApi", "hip/hip_runtime_api.h", ["__HIP_PLATFORM_AMD__=1"],
                  "tests/fixtures/hip/hip_stand_in.h", ["FERRY_FIXTURE_HIP_MAJOR=6"]),
}

# Functions that AMD's header also has as templates.
OVERLOADED = {
    "hipMalloc": "hipError_t (*)(void**, size_t)",
    "hipHostMalloc": "hipError_t (*)(void**, size_t, unsigned)",
    "hipMallocAsync": "hipError_t (*)(void**, size_t, hipStream_t)",
    "hipMallocFromPoolAsync": "hipError_t (*)(void**, size_t, hipMemPool_t, hipStream_t)",
    "hipMallocManaged": "hipError_t (*)(void**, size_t, unsigned)",
}


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Row:
    """One function of a table of Ferry's."""

    def __init__(self, is_required, name, version, exported, member):
        self.is_required = is_required
        self.name = name
        self.version = version
        self.exported = exported or name
        self.member = member


def rows_of(vendor):
    pattern = r'(Required|Optional)\(\s*"(\w+)",\s*(?:(\d+),\s*)?(?:"(\w+)",\s*)?&api\.(\w+)\)'
    return [Row(kind == "Required", name, version, exported, member)
            for kind, name, version, exported, member in re.findall(pattern, text_of(vendor.api_source))]


def not_compared(vendor):
    """Constants, types and functions of Ferry's declarations that the test in C++ does not look at."""
    declared = re.findall(r"^inline constexpr [\w:]+ (k\w+)", text_of(vendor.abi), re.MULTILINE)
    declared += re.findall(r"^(?:struct|using) (\w+)", text_of(vendor.abi), re.MULTILINE)
    table = text_of(vendor.api_header).split(f"struct {vendor.kind} {{")[1].split("\n}")[0]
    members = re.findall(r"\(\*(\w+)\)", table)
    test = text_of(vendor.test)
    return [name for name in declared if not re.search(rf"\b{name}\b", test)] + \
        [f"{vendor.kind}::{name}" for name in members if not re.search(rf"\b{name}\b", test)]


def declared(vendor, folder):
    """All names in the vendor's header and those that it includes."""
    command = ["g++", "-E", "-P", "-x", "c++", "-", "-I" + folder] + ["-D" + name for name in vendor.defines]
    done = subprocess.run(command, input=f"#include <{vendor.include}>\n", check=True, stdout=subprocess.PIPE, text=True)
    return set(re.findall(r"\b\w+\b", done.stdout))


def exported(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def shapes(includes, statements, flags):
    """By name, what the program that has these statements prints."""
    code = "\n".join([f"#include {file}" for file in includes] + [_PRINT] + statements + ["}"])
    with tempfile.TemporaryDirectory() as work:
        source, program = os.path.join(work, "shapes.cc"), os.path.join(work, "shapes")
        with open(source, "w", encoding="utf-8") as file:
            file.write(code)
        # Not resolved: the functions' types are asked for, never their addresses.
        subprocess.run(["g++", "-std=c++20", "-w", "-I.", *flags, source, "-o", program], check=True)
        lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


def _shape_of(name, function, type_of_it=None):
    chosen = f"static_cast<{type_of_it}>(&{function})" if type_of_it else f"&{function}"
    return f'  Print("{name}", ferry::gpu::AbiShape(static_cast<decltype({chosen})>(nullptr)));'


def vendors_shapes(vendor, folder, names):
    """By name, as the vendor declares it."""
    return shapes([f'"{_ABI_SHAPE}"', f"<{vendor.include}>"],
                  [_shape_of(name, name, OVERLOADED.get(name)) for name in names],
                  ["-I" + folder] + ["-D" + name for name in vendor.defines])


@functools.lru_cache(maxsize=None)
def table_shapes(vendor):
    """By the name in the vendor's library, as the tables in gpu_backends have it."""
    return shapes([f'"{_ABI_SHAPE}"', f'"{vendor.api_header}"'],
                  [f'  Print("{row.exported}", ferry::gpu::AbiShape(ferry::gpu::{vendor.kind}{{}}.{row.member}));'
                   for row in rows_of(vendor)], [])


def stand_in_functions(vendor):
    prefix = {"cuda": "cu", "hip": "hip"}[vendor.name]
    return re.findall(rf"^(?:[\w:]+|const char\*) ({prefix}[A-Z]\w*)\(", text_of(vendor.stand_in), re.MULTILINE)


@functools.lru_cache(maxsize=None)
def stand_in_shapes(vendor):
    return shapes([f'"{_ABI_SHAPE}"', f'"{vendor.stand_in}"'],
                  [_shape_of(name, f"ferry::fixtures::{name}") for name in stand_in_functions(vendor)],
                  ["-D" + name for name in vendor.stand_in_defines])

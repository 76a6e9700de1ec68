"""cc_test, cc_library and cc_binary of tests/: as Bazel's, but compiled quickly.

Half of all code is tests, and most of the time of compiling one goes into GoogleTest's headers and the standard
library's, and into optimising what runs once. So these are precompiled (prelude.bzl), and tests are not optimised. Code
under test is, but for what stands in headers. Those that include gRPC have `prelude = "grpc_test"`.
"""

load(":prelude.bzl", "with_prelude")

# Packages whose tests are optimised: code without locks stands in headers there, or much is computed. Tests there that
# have one thread and are over at once say `prelude = "test"`.
_OPTIMIZED = [
    "tests/client/direct",  # benchmarks/links measures with it
    "tests/coll",
    "tests/coll/board",
    "tests/coll/levels",
    "tests/engine",
    "tests/mpi/ranks",
    "tests/shm",
]

def _quick(rule, prelude, attributes):
    optimized = native.package_name() in _OPTIMIZED
    with_prelude(rule, prelude or ("optimized_test" if optimized else "test"), **attributes)

def cc_test(prelude = None, **attributes):
    _quick(native.cc_test, prelude, attributes)

def cc_library(prelude = None, **attributes):
    _quick(native.cc_library, prelude, attributes)

def cc_binary(prelude = None, **attributes):
    _quick(native.cc_binary, prelude, attributes)

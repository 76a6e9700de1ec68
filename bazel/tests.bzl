"""cc_test, cc_library and cc_binary of tests/: as Bazel's, but compiled quickly.

Half of all code is tests, and most of the time of compiling one goes into GoogleTest's headers and the standard
library's, and into optimising what runs once. So these are precompiled (prelude.h), and tests are not optimised. Code
under test is, but for what stands in headers.
"""

# Under sanitizers, as .bazelrc has it: what they check runs slowly enough.
TEST_COPTS = select({
    "//bazel:sanitizers": [],
    "//conditions:default": ["-O0"],
})

# Packages whose tests are optimised: code without locks stands in headers there, or much is computed.
_OPTIMIZED = [
    "tests/collective",
    "tests/collective/board",
    "tests/collective/levels",
    "tests/engine",
    "tests/mpi/ranks",
    "tests/shm",
    "tests/tools/ferrysim",
]

def _quick(rule, srcs = [], deps = [], copts = [], **attributes):
    optimized = native.package_name() in _OPTIMIZED
    if srcs and not [src for src in srcs if not src.endswith((".cc", ".h"))]:
        deps = deps + ["//bazel:optimized_prelude" if optimized else "//bazel:prelude"]
        copts = copts + ([] if optimized else TEST_COPTS) + ["-include", "prelude.h", "-Winvalid-pch"]
    rule(srcs = srcs, deps = deps, copts = copts, **attributes)

def cc_test(**attributes):
    _quick(native.cc_test, **attributes)

def cc_library(**attributes):
    _quick(native.cc_library, **attributes)

def cc_binary(**attributes):
    _quick(native.cc_binary, **attributes)

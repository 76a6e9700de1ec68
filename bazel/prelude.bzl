"""cc_library and cc_binary as Bazel's, but compiled quickly: with a prelude.

Reading headers takes a third of the time of compiling a file, and more than half where gRPC is among them. So what files of
a kind include most is precompiled: a prelude. A target with a prelude compiles with it in front. Its files include what they
use all the same: they must compile without it, and so does `./dev lint` read them. tests.bzl has the preludes of tests.

A cc_library may say `files = ["lane"]` where Bazel's has "lane.cc" in `srcs` and "lane.h" in `hdrs`.
"""

load(":precompiled_header.bzl", "precompiled_header")
load(":visibility.bzl", "users_of")

def _sanitized_or_not(sanitized, otherwise):
    return select({
        "//bazel:sanitizers": sanitized,
        "//conditions:default": otherwise,
    })

def _label(prelude):
    return "//bazel:" + prelude

def _include(prelude):
    return [
        "-include",
        "bazel/%s/prelude.h" % prelude,
        "-Winvalid-pch",
        # A prelude fills the memory at which gcc begins to look for what it needs no more; few files use half a gigabyte.
        "--param=ggc-min-heapsize=524288",
    ]

# Under sanitizers, as .bazelrc has it: what they check runs slowly enough.
_UNOPTIMIZED = _sanitized_or_not([], ["-O0"])

# Of an inlined move of a std::string, gcc 12 optimises and reports the branch that is not taken, if <string> is precompiled.
_NO_FALSE_REPORTS = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"]

# The control plane and the tools carry no messages, and take a fifth less time to compile so.
_CONTROL = ["-O1"] + _NO_FALSE_REPORTS

def _prelude(hdr, copts = [], deps = [], testonly = False, sanitized = None):
    return struct(hdr = hdr, copts = copts, deps = deps, testonly = testonly, sanitized = sanitized)

# By name: the header, the options of what is compiled with it, and which other one is the same under sanitizers. gcc takes
# the options of the header for all that is compiled with it, so there can be no others.
#
# An object whose file includes gRPC needs gRPC when it is linked, though it calls nothing there: so that has preludes of
# its own.
_PRELUDES = {
    "control": _prelude("std_prelude.h", _CONTROL, sanitized = "std"),
    "grpc": _prelude("grpc_prelude.h", _CONTROL, deps = [":grpc_headers"]),
    "grpc_test": _prelude("grpc_test_prelude.h", _UNOPTIMIZED, deps = [":grpc_headers"], testonly = True),
    "optimized_test": _prelude("test_prelude.h", testonly = True, sanitized = "test"),
    "std": _prelude("std_prelude.h", _NO_FALSE_REPORTS),
    "test": _prelude("test_prelude.h", _UNOPTIMIZED, testonly = True),
}

# Those whose code runs seldom, by folder; all else has "std".
_CONTROL_FOLDERS = [
    "daemon/admin",
    "daemon/attach",
    "daemon/control",
    "daemon/grpc",
    "daemon/jobs",
    "daemon/links",
    "daemon/peers",
    "daemon/services",
    "daemon/tls",
    "tools",
]
_COMPUTING = ["tools/ferrysim"]

def preludes():
    """Declares them; called once from BUILD."""
    for name, prelude in _PRELUDES.items():
        precompiled_header(
            name = name,
            testonly = prelude.testonly,
            copts = prelude.copts,
            hdr = prelude.hdr,
            visibility = ["//visibility:public"],
            deps = prelude.deps,
        )

def _prelude_of(package):
    is_control = [folder for folder in _CONTROL_FOLDERS if (package + "/").startswith(folder + "/")]
    return "control" if is_control and package not in _COMPUTING else "std"

def with_prelude(rule, prelude, srcs = [], deps = [], copts = [], **attributes):
    """A target of `rule` that is compiled with a prelude and its options, if its sources are C++."""
    if type(srcs) == "list" and srcs and not [src for src in srcs if not src.endswith((".cc", ".h"))]:
        made = _PRELUDES[prelude]
        deps = deps + _sanitized_or_not([_label(made.sanitized or prelude)], [_label(prelude)])
        copts = made.copts + copts + _sanitized_or_not(_include(made.sanitized or prelude), _include(prelude))
    rule(srcs = srcs, deps = deps, copts = copts, **attributes)

def with_files(attributes):
    """Those of a library, with `files`: each is the name of a header and of its source, NAME.h and NAME.cc."""
    attributes = dict(attributes)
    files = attributes.pop("files", [])
    for name, ending in {"hdrs": ".h", "srcs": ".cc"}.items() if files else []:
        attributes[name] = sorted(attributes.get(name, []) + [file + ending for file in files])
    return attributes

def _quick(rule, prelude = None, copts = [], **attributes):
    if copts:
        rule(copts = copts, **attributes)  # options of its own, with which no prelude is made
    else:
        with_prelude(rule, prelude or _prelude_of(native.package_name()), **attributes)

def cc_library(**attributes):
    users = users_of(native.package_name())
    if users:
        attributes.setdefault("visibility", users)
    _quick(native.cc_library, **with_files(attributes))

def cc_binary(**attributes):
    if users_of(native.package_name()):
        attributes.setdefault("visibility", ["//visibility:public"])  # of the product: it is installed
    _quick(native.cc_binary, **attributes)

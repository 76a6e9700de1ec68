"""gRPC linked statically, where the distribution has archives of it, for the programs that start with every job.

The distribution's gRPC needs some fifty shared libraries, most of them Abseil's, and has thousands of symbols to be
found in them: that takes a process longer than a call. Archives have their symbols bound when they are linked.

Abseil comes from archives, too; OpenSSL, protobuf, c-ares and zlib stay shared, and so does all in tests. Under a sanitizer, code that is not
instrumented has to stay in libraries of its own, which the sanitizer is told to leave alone.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Scripts for the linker that name archives, or shared libraries where there are none. Of Abseil they name all: which of them
# gRPC needs is another matter in each release, and of an archive only those members are taken that something needs.
_SCRIPTS = ["//bazel:%s.ld" % name for name in ["grpc", "abseil"]]
_SCRIPTS_WITHOUT_TLS = ["//bazel:%s.ld" % name for name in ["grpc_without_tls", "abseil"]]

_FIND = """
folder=$(dirname "$({compiler} -print-file-name=lib{first}.a)")
archives=$(cd "$folder" && ls {patterns} 2>/dev/null | sed "s,^,$folder/,") || true
if [ "$folder" != . ]; then echo 'GROUP(' $archives ')'; else echo 'INPUT({libraries})'; fi >{out}
"""

def _archives_script_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    compiler = toolchain.compiler_executable
    if toolchain.sysroot:
        compiler += " --sysroot=" + toolchain.sysroot
    ctx.actions.run_shell(
        command = _FIND.format(
            compiler = compiler,
            first = ctx.attr.libraries[0],
            libraries = " ".join(["-l" + name for name in ctx.attr.libraries]),
            out = ctx.outputs.out.path,
            patterns = " ".join(["lib%s.a" % name for name in ctx.attr.archives or ctx.attr.libraries]),
        ),
        inputs = toolchain.all_files,
        outputs = [ctx.outputs.out],
        use_default_shell_env = True,
    )

archives_script = rule(
    implementation = _archives_script_impl,
    attrs = {
        "archives": attr.string_list(),  # patterns of the shell; not given: as the libraries
        "libraries": attr.string_list(mandatory = True),
        "out": attr.output(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _unless_sanitized(options):
    return select({
        "//bazel:sanitizers": [],
        "//conditions:default": ["-Wl,--as-needed"] + options,
    })

def _program(scripts, libraries):
    return struct(
        linkopts = _unless_sanitized(
            ["$(location %s)" % script for script in scripts] + ["-l" + library for library in libraries],
        ),
        inputs = scripts,  # the additional_linker_inputs
    )

# Of a cc_binary. Those of //third_party:grpc, which come after them, then find nothing left to do.
GRPC = _program(_SCRIPTS, ["re2", "ssl", "crypto", "cares", "z"])

# For callers at Unix sockets only: without TLS, and so without OpenSSL.
GRPC_WITHOUT_TLS = _program(_SCRIPTS_WITHOUT_TLS, ["cares", "z"])

"""gRPC linked statically, for the programs that start with every job.

The distribution's gRPC needs some fifty shared libraries, most of them Abseil's, and has thousands of symbols to be
found in them: that takes a process longer than a call. Archives have their symbols bound when they are linked.

Abseil comes from archives, too; OpenSSL, protobuf, c-ares and zlib stay shared, and so does all in tests. Under a sanitizer, code that is not
instrumented has to stay in libraries of its own, which the sanitizer is told to leave alone.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# A script for the linker that names all archives of Abseil: which of them gRPC needs is another matter in each release of
# Abseil, and of an archive only those members are taken that something needs.
GRPC_SCRIPTS = ["//bazel:abseil.ld"]

def _archives_script_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    compiler = toolchain.compiler_executable
    if toolchain.sysroot:
        compiler += " --sysroot=" + toolchain.sysroot
    ctx.actions.run_shell(
        command = "archives=$(ls $(dirname $(%s -print-file-name=lib%sbase.a))/lib%s*.a) && echo 'GROUP(' $archives ')' >%s" % (
            compiler,
            ctx.attr.family,
            ctx.attr.family,
            ctx.outputs.out.path,
        ),
        inputs = toolchain.all_files,
        outputs = [ctx.outputs.out],
        use_default_shell_env = True,
    )

archives_script = rule(
    implementation = _archives_script_impl,
    attrs = {
        "family": attr.string(mandatory = True),  # what the names of all begin with
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

def _archives(names):
    return ["-l:lib%s.a" % name for name in names + ["gpr", "address_sorting", "upb"]]

def _program(names, libraries):
    return _unless_sanitized(
        ["-Wl,--start-group"] + _archives(names) + ["-Wl,--end-group"] +
        ["$(location %s)" % script for script in GRPC_SCRIPTS] +
        ["-l" + library for library in libraries],
    )

# linkopts of a cc_binary, whose additional_linker_inputs are GRPC_SCRIPTS. Those of //third_party:grpc, which come after
# them, then find nothing left to do.
GRPC = _program(["grpc++", "grpc"], ["re2", "ssl", "crypto", "cares", "z"])

# For callers at Unix sockets only: without TLS, and so without OpenSSL.
GRPC_WITHOUT_TLS = _program(["grpc++_unsecure", "grpc_unsecure"], ["cares", "z"])

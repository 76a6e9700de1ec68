"""@arm64: gcc of Debian's packages gcc-aarch64-linux-gnu and g++-aarch64-linux-gnu, with arm64 libraries of Debian in a folder.

`./dev arm64` makes that folder (arm64_root.sh), ~/.cache/ferry-arm64, or as --repo_env=FERRY_ARM64_ROOT says. Nothing here is
looked at but under --config=arm64. Options are those that Bazel finds for the machine's own gcc.
"""

_BUILD = """
load("@bazel_tools//tools/cpp:unix_cc_toolchain_config.bzl", "cc_toolchain_config")

package(default_visibility = ["//visibility:public"])

cc_toolchain_suite(
    name = "toolchain",
    toolchains = {{"aarch64": ":gcc"}},
)

filegroup(name = "nothing")

cc_toolchain(
    name = "gcc",
    all_files = ":nothing",
    compiler_files = ":nothing",
    dwp_files = ":nothing",
    linker_files = ":nothing",
    objcopy_files = ":nothing",
    strip_files = ":nothing",
    toolchain_config = ":config",
)

cc_toolchain_config(
    name = "config",
    abi_libc_version = "glibc",
    abi_version = "gcc",
    builtin_sysroot = "{root}",
    compile_flags = [
        "-U_FORTIFY_SOURCE", "-fstack-protector", "-Wall", "-Wunused-but-set-parameter", "-Wno-free-nonheap-object",
        "-fno-omit-frame-pointer",
    ],
    compiler = "gcc",
    cpu = "aarch64",
    cxx_builtin_include_directories = [
        "/usr/lib/gcc-cross/aarch64-linux-gnu",
        "/usr/aarch64-linux-gnu/include",
        "{root}/usr/include",
    ],
    host_system_name = "local",
    link_flags = ["-fuse-ld=gold", "-Wl,-no-as-needed", "-Wl,-z,relro,-z,now", "-pass-exit-codes"],
    link_libs = ["-lstdc++", "-lm"],
    supports_start_end_lib = True,
    target_libc = "glibc",
    target_system_name = "aarch64-linux-gnu",
    tool_paths = {tools},
    toolchain_identifier = "arm64",
    unfiltered_compile_flags = [
        "-fno-canonical-system-headers", "-Wno-builtin-macro-redefined", "-D__DATE__=\\"redacted\\"",
        "-D__TIMESTAMP__=\\"redacted\\"", "-D__TIME__=\\"redacted\\"",
    ],
)
"""

_TOOLS = ["ar", "cpp", "dwp", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]

def _arm64_impl(ctx):
    environment = ctx.os.environ
    root = environment.get("FERRY_ARM64_ROOT", environment.get("HOME", "") + "/.cache/ferry-arm64")
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    tools = {name: "/usr/bin/aarch64-linux-gnu-" + name for name in _TOOLS}
    tools["llvm-cov"] = "/bin/false"  # Bazel asks for its name
    ctx.file("BUILD", _BUILD.format(root = root, tools = repr(tools)))

_arm64 = repository_rule(
    implementation = _arm64_impl,
    environ = ["FERRY_ARM64_ROOT", "HOME"],
)

def arm64():
    """Declares @arm64; called once from WORKSPACE."""
    _arm64(name = "arm64")

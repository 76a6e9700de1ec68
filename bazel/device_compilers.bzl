"""The compilers for device code where they are installed: Debian's clang-14 (OpenCL C), lld-14 (AMD's code objects) and llvm-spirv-14 (SPIR-V).

Where one is not, there are no images of its kind. With --repo_env=FERRY_DEVICE_IMAGES=FOLDER nothing is compiled: images come from that folder, as
far as it has them (docs/building.md).
"""

_CLANG = "/usr/bin/clang-14"
_LLD = "/usr/bin/ld.lld-14"
_SPIRV = "/usr/bin/llvm-spirv-14"
_VALIDATOR = "/usr/bin/spirv-val"  # only checks

def _device_compilers_impl(ctx):
    prebuilt = []
    folder = ctx.os.environ.get("FERRY_DEVICE_IMAGES", "")
    has = {
        path: folder == "" and ctx.path(path).exists
        for path in [_CLANG, _LLD, _SPIRV, _VALIDATOR]
    }
    if folder != "":
        for file in ctx.path(folder).readdir():
            ctx.symlink(file, "prebuilt/" + file.basename)
            prebuilt.append(file.basename)
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", "exports_files(%s)\n" % repr(["prebuilt/" + name for name in prebuilt]))
    ctx.file("defs.bzl", "".join([
        "CLANG = %s\n" % repr(_CLANG if has[_CLANG] else ""),
        "LLD = %s\n" % repr(_LLD if has[_LLD] else ""),
        "LLVM_SPIRV = %s\n" % repr(_SPIRV if has[_SPIRV] else ""),
        "SPIRV_VAL = %s\n" % repr(_VALIDATOR if has[_VALIDATOR] else ""),
        "PREBUILT = %s\n" % repr(prebuilt),
    ]))

_device_compilers = repository_rule(
    implementation = _device_compilers_impl,
    environ = ["FERRY_DEVICE_IMAGES"],
    local = True,
)

def device_compilers():
    """Declares @device_compilers; called once from WORKSPACE."""
    _device_compilers(name = "device_compilers")

"""device_images: one source in OpenCL C, compiled for every kind of device and embedded in a library.

The source is written in what all devices have in common (include/ferry/device/platform.h).

The compilers are clang (OpenCL C), lld (AMD's code objects) and llvm-spirv (SPIR-V), of one version: 14, as Debian 12 has them,
or 19, as Debian 13. Where one is not installed there are no images of its kind, and the library says why. The compilers are
inputs (installed.bzl): images are made as soon as their compiler is there. With --repo_env=FERRY_DEVICE_IMAGES=FOLDER nothing
is compiled: images come from that folder, as far as it has them; --repo_env=FERRY_DEVICE_COMPILERS=FOLDER has the compilers
(docs/building.md).
"""

load("@installed//:defs.bzl", "DEVICE_COMPILERS")

# By which versions of the compilers images are made: the first that is there.
_VERSIONS = ["14", "19"]

# What clang 14 has code for, and AMD's run times take. Each runs on the devices of its own name only.
_AMD_ARCHITECTURES = ["gfx906", "gfx908", "gfx90a", "gfx1030"]

_CLANG_FLAGS = "-x cl -cl-std=CL2.0 -Wall -Wextra -Werror -Wno-unused-function -I."

def _spirv(clang, tools, version, source, out):
    """Not optimised: the device's driver does that, and llvm-spirv 14 writes blocks of optimised code in an order that is not valid."""
    command = "%s -target spir64 -O2 -Xclang -disable-llvm-passes -Xclang -finclude-default-header" % clang
    command += " -emit-llvm -c %s -o %s.bc && %s --spirv-max-version=1.2 %s.bc -o %s && rm %s.bc" % (source, out, tools["llvm-spirv-" + version], out, out, out)
    if "spirv-val" in tools:  # only checks
        command += " && %s --target-env spv1.2 %s" % (tools["spirv-val"], out)
    return command

def _ptx(clang, source, out):
    """For sm_70 and all later ones, by the driver's own compiler."""
    target = "-target nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_70 -Xclang -target-feature -Xclang +ptx63"
    return "%s %s -O2 -S %s -o %s" % (clang, target, source, out)

def _amd(clang, tools, version, source, out, architecture):
    """Of the version of code objects that ROCm takes from 4.3 on; newer compilers would write a newer one."""
    target = "-target amdgcn-amd-amdhsa -mcpu=%s -mcode-object-version=4 -nogpulib" % architecture
    command = "%s %s -O2 -c %s -o %s.o" % (clang, target, source, out)
    return command + " && %s -shared %s.o -o %s && rm %s.o" % (tools["ld.lld-" + version], out, out, out)

# By format, the programs that make its images, without their version: "clang" is clang-14, or clang-19.
_COMPILERS = {
    "kAmdgcn": ["clang", "ld.lld"],
    "kPtx": ["clang"],
    "kSpirv": ["clang", "llvm-spirv"],
}

_PACKAGES = {"ld.lld": "lld"}  # of Debian, where they are not called as the program

def _kinds(base):
    """(format, architecture, file) of every image."""
    return [("kSpirv", "", base + ".spv"), ("kPtx", "sm_70", base + ".ptx")] + [
        ("kAmdgcn", architecture, "%s.%s.co" % (base, architecture))
        for architecture in _AMD_ARCHITECTURES
    ]

def _missing(tools, format, version):
    """The programs of that version that are not there, with the packages that have them."""
    return [
        "%s/%s-%s (Debian's %s-%s)" % (DEVICE_COMPILERS, program, version, _PACKAGES.get(program, program), version)
        for program in _COMPILERS[format]
        if "%s-%s" % (program, version) not in tools
    ]

def _version(tools, format):
    """Of the compilers that make images of that format; None: they are not all there."""
    complete = [version for version in _VERSIONS if not _missing(tools, format, version)]
    return complete[0] if complete else None

def _why_not(tools, prebuilt, format, file):
    """What there is no such image for the lack of; empty if there is one."""
    if prebuilt:
        return "" if file in prebuilt else file + " in FERRY_DEVICE_IMAGES"
    if _version(tools, format):
        return ""

    # Of the version of which there is a part, if there is one.
    begun = [version for version in _VERSIONS if len(_missing(tools, format, version)) < len(_COMPILERS[format])]
    return " or ".join([" and ".join(_missing(tools, format, version)) for version in begun or _VERSIONS])

def _make_image(ctx, tools, prebuilt, format, architecture, file):
    image = ctx.actions.declare_file(file)
    if prebuilt:
        ctx.actions.symlink(output = image, target_file = prebuilt[file])
        return image
    paths = {program: tool.path for program, tool in tools.items()}
    version = _version(tools, format)
    clang = " ".join([paths["clang-" + version], _CLANG_FLAGS] + ["-I" + folder for folder in ctx.attr.folders])
    if format == "kSpirv":
        command = _spirv(clang, paths, version, ctx.file.src.path, image.path)
    elif format == "kPtx":
        command = _ptx(clang, ctx.file.src.path, image.path)
    else:
        command = _amd(clang, paths, version, ctx.file.src.path, image.path, architecture)
    ctx.actions.run_shell(
        inputs = [ctx.file.src] + ctx.files.device_hdrs + tools.values(),
        outputs = [image],
        command = command,
        mnemonic = "DeviceCode",
        progress_message = "Compiling device code " + file,
    )
    return image

def _assembly(ctx, images):
    """The bytes, by the assembler: compilers take seconds for arrays of that size. PTX ends with a zero.

    The compiler does not say that it reads them, so Bazel would keep the object of other bytes: the source tells them apart.
    """
    lines = ["echo \"/* $(cat %s </dev/null | cksum) */\"" % " ".join([image.path for image in images]), "echo '.section .rodata'"]
    for image in images:
        symbol = _symbol(image)
        lines += [
            "echo '.balign 64'",
            "echo '.hidden %s' '\n.globl %s' '\n%s:'" % (symbol, symbol, symbol),
            "echo '.incbin \"%s\"'" % image.path,
            "echo '.hidden %s_end' '\n.globl %s_end' '\n%s_end:' '\n.byte 0'" % (symbol, symbol, symbol),
        ]
    lines.append("echo '.section .note.GNU-stack,\"\",@progbits'")
    assembly = ctx.actions.declare_file(ctx.label.name + "_bytes.S")
    ctx.actions.run_shell(inputs = images, outputs = [assembly], command = "{ %s; } >%s" % ("; ".join(lines), assembly.path))
    return assembly

def _symbol(image):
    return "ferry_image_" + image.basename.replace(".", "_")

def _table(ctx, entries, reasons):
    """The functions that give the images, and why there are none of a format."""
    code = ["#include \"%s\"" % ctx.file.hdr.path, "#include <array>"]
    rows = []
    for format, architecture, image in entries:
        symbol = _symbol(image)
        code += ["extern \"C\" const char %s[];" % symbol, "extern \"C\" const char %s_end[];" % symbol]
        rows.append("      {ImageFormat::%s, \"%s\", {%s, %s_end}}," % (format, architecture, symbol, symbol))
    code += [
        "namespace ferry::gpu {",
        "std::span<const DeviceImage> %s() {" % ctx.attr.function,
        "  static const std::array<DeviceImage, %d> images = {{" % len(rows),
    ] + rows + ["  }};", "  return images;", "}"]
    if ctx.attr.why_not:
        code += ["std::string_view %s(ImageFormat format) {" % ctx.attr.why_not, "  switch (format) {"]
        code += ["    case ImageFormat::%s: return \"%s\";" % reason for reason in reasons.items()]
        code += ["  }", "  return {};", "}"]
    table = ctx.actions.declare_file(ctx.label.name + "_table.cc")
    ctx.actions.write(table, "\n".join(code + ["}  // namespace ferry::gpu", ""]))
    return table

def _device_image_sources_impl(ctx):
    tools = {file.basename: file for file in ctx.files._compilers}
    prebuilt = {file.basename: file for file in ctx.files._images}
    entries, reasons = [], {}
    for format, architecture, file in _kinds(ctx.file.src.basename.split(".")[0]):
        why_not = _why_not(tools, prebuilt, format, file)
        if why_not == "":
            entries.append((format, architecture, _make_image(ctx, tools, prebuilt, format, architecture, file)))
            reasons[format] = ""  # one is enough
        elif format not in reasons:
            reasons[format] = why_not
    images = [image for _, _, image in entries]
    return [
        DefaultInfo(files = depset([_assembly(ctx, images), _table(ctx, entries, reasons)])),
        OutputGroupInfo(images = depset(images)),
    ]

_device_image_sources = rule(
    implementation = _device_image_sources_impl,
    attrs = {
        "device_hdrs": attr.label_list(allow_files = True),
        "folders": attr.string_list(),
        "function": attr.string(mandatory = True),
        "hdr": attr.label(allow_single_file = True, mandatory = True),
        "src": attr.label(allow_single_file = True, mandatory = True),
        "why_not": attr.string(),
        "_compilers": attr.label(default = "@installed//:device_compilers"),
        "_images": attr.label(default = "@installed//:device_images"),
    },
)

def device_images(name, src, device_hdrs, function, hdr, includes = [], why_not = "", visibility = None):
    """A library with the function ferry::gpu::FUNCTION, which gives the images of `src`.

    Args:
      name: of the library; NAME_files are the images.
      src: the source, OpenCL C, that includes `device_hdrs`.
      device_hdrs: what it includes, directly or not; found below the workspace's root and `includes`.
      function: std::span<const DeviceImage> FUNCTION(), as `hdr` declares it.
      hdr: of the library; it includes gpu_backends/device/device_image.h.
      includes: folders from the root.
      why_not: std::string_view WHY_NOT(ImageFormat), as `hdr` declares it, or empty: what was missing where there is no image
        of a format.
      visibility: of the library.
    """
    _device_image_sources(
        name = name + "_sources",
        src = src,
        device_hdrs = device_hdrs,
        folders = includes,
        function = function,
        hdr = hdr,
        why_not = why_not,
    )
    native.filegroup(
        name = name + "_files",
        srcs = [name + "_sources"],
        output_group = "images",
        visibility = visibility,
    )
    native.cc_library(
        name = name,
        srcs = [name + "_sources"],
        hdrs = [hdr],
        textual_hdrs = [name + "_files"],  # what the assembler reads
        visibility = visibility,
        deps = ["//gpu_backends/device"],
    )

"""device_images: one source in OpenCL C, compiled for every kind of device and embedded in a library.

The source is written in what all devices have in common (gpu_backends/device/include/ferry/device/platform.h).
"""

load("@device_compilers//:defs.bzl", "CLANG", "LLD", "LLVM_SPIRV", "PREBUILT", "SPIRV_VAL")

# What clang 14 has code for, and AMD's run times take. Each runs on the devices of its own name only.
_AMD_ARCHITECTURES = ["gfx906", "gfx908", "gfx90a", "gfx1030"]

_CLANG_FLAGS = "-x cl -cl-std=CL2.0 -Wall -Wextra -Werror -Wno-unused-function -I."

def _spirv(flags, source, out):
    """Not optimised: the device's driver does that, and llvm-spirv 14 writes blocks of optimised code in an order that is not valid."""
    command = "%s %s -target spir64 -O2 -Xclang -disable-llvm-passes -Xclang -finclude-default-header" % (CLANG, flags)
    command += " -emit-llvm -c %s -o %s.bc && %s --spirv-max-version=1.2 %s.bc -o %s && rm %s.bc" % (source, out, LLVM_SPIRV, out, out, out)
    if SPIRV_VAL != "":
        command += " && %s --target-env spv1.2 %s" % (SPIRV_VAL, out)
    return command

def _ptx(flags, source, out):
    """For sm_70 and all later ones, by the driver's own compiler."""
    target = "-target nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_70 -Xclang -target-feature -Xclang +ptx63"
    return "%s %s %s -O2 -S %s -o %s" % (CLANG, flags, target, source, out)

def _amd(flags, source, out, architecture):
    target = "-target amdgcn-amd-amdhsa -mcpu=%s -nogpulib" % architecture
    command = "%s %s %s -O2 -c %s -o %s.o" % (CLANG, flags, target, source, out)
    return command + " && %s -shared %s.o -o %s && rm %s.o" % (LLD, out, out, out)

def _image(name, src, hdrs, command):
    """Declares the image `name` if it can be had; returns whether."""
    if name in PREBUILT:
        native.genrule(
            name = name + "_prebuilt",
            srcs = ["@device_compilers//:prebuilt/" + name],
            outs = [name],
            cmd = "cp $< $@",
        )
        return True
    if command == "":
        return False
    native.genrule(
        name = name + "_compiled",
        srcs = [src] + hdrs,
        outs = [name],
        cmd = command,
        message = "Compiling device code",
    )
    return True

def device_images(name, src, device_hdrs, function, hdrs, includes = [], visibility = None):
    """A library with the function ferry::gpu::FUNCTION, which gives the images of `src`.

    Args:
      name: of the library.
      src: the source, OpenCL C, that includes `device_hdrs`.
      device_hdrs: what it includes, directly or not; found below the workspace's root and `includes`.
      function: std::span<const DeviceImage> FUNCTION(), as one of `hdrs` declares it.
      hdrs: of the library; they include gpu_backends/device/device_image.h.
      includes: folders from the root.
      visibility: of the library.
    """
    base = src.split(".")[0]
    flags = _CLANG_FLAGS + "".join([" -I" + folder for folder in includes])
    has_clang = CLANG != ""
    source = "$(location %s)" % src
    wanted = [
        ("kSpirv", "", base + ".spv", _spirv(flags, source, "$@") if has_clang and LLVM_SPIRV != "" else ""),
        ("kPtx", "sm_70", base + ".ptx", _ptx(flags, source, "$@") if has_clang else ""),
    ] + [
        ("kAmdgcn", architecture, "%s.%s.co" % (base, architecture), _amd(flags, source, "$@", architecture) if has_clang and LLD != "" else "")
        for architecture in _AMD_ARCHITECTURES
    ]
    images = [image for image in wanted if _image(image[2], src, device_hdrs, image[3])]
    symbols = ["ferry_image_" + image[2].replace(".", "_") for image in images]

    # The bytes, by the assembler: compilers take seconds for arrays of that size. PTX ends with a zero.
    # The compiler does not say that it reads them, so Bazel would keep the object of other bytes: the source tells them apart.
    locations = " ".join(["$(location %s)" % image[2] for image in images])
    assembly = ["echo \"/* $$(cat %s </dev/null | cksum) */\"" % locations, "echo '.section .rodata'"]
    code = ["#include \"%s/%s\"" % (native.package_name(), hdrs[0])]
    for i in range(len(images)):
        symbol = symbols[i]
        assembly += [
            "echo '.balign 64'",
            "echo '.hidden %s' '\n.globl %s' '\n%s:'" % (symbol, symbol, symbol),
            "echo '.incbin \"$(location %s)\"'" % images[i][2],
            "echo '.hidden %s_end' '\n.globl %s_end' '\n%s_end:' '\n.byte 0'" % (symbol, symbol, symbol),
        ]
        code.append("extern \"C\" const char %s[];" % symbol)
        code.append("extern \"C\" const char %s_end[];" % symbol)
    assembly.append("echo '.section .note.GNU-stack,\"\",@progbits'")
    code += [
        "namespace ferry::gpu {",
        "std::span<const DeviceImage> %s() {" % function,
        "  static const std::array<DeviceImage, %d> images = {{" % len(images),
    ]
    for i in range(len(images)):
        code.append("      {ImageFormat::%s, \"%s\", {%s, %s_end}}," % (images[i][0], images[i][1], symbols[i], symbols[i]))
    code += ["  }};", "  return images;", "}", "}  // namespace ferry::gpu"]
    native.genrule(
        name = name + "_assembly",
        srcs = [image[2] for image in images],
        outs = [name + "_bytes.S"],
        cmd = "{ %s; } >$@" % "; ".join(assembly),
    )
    native.genrule(
        name = name + "_table",
        outs = [name + "_table.cc"],
        cmd = "cat >$@ <<'END'\n%s\nEND" % "\n".join(["#include <array>"] + code),
    )
    native.filegroup(
        name = name + "_files",
        srcs = [image[2] for image in images],
    )
    native.cc_library(
        name = name,
        srcs = [name + "_bytes.S", name + "_table.cc"],
        hdrs = hdrs,
        textual_hdrs = [image[2] for image in images],  # what the assembler reads
        visibility = visibility,
        deps = ["//gpu_backends/device:device_image"],
    )

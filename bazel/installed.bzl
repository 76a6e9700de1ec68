"""@installed: what may be installed on this machine, for targets that do without where it is not; and the C toolchain.

Nothing here asks whether a file is there: Bazel would keep the answer. There is a link for every file, and a group is a glob of
links. To a glob a link to nothing is no file; and Bazel follows the links anew in every build. So a package that is installed,
upgraded or removed later is noticed at once, whoever calls Bazel, and what depends on the group is made anew.
"""

load("@bazel_tools//tools/cpp:cc_configure.bzl", "cc_autoconf_impl")

# The compilers for device code (device_code.bzl), by what they are called in FERRY_DEVICE_COMPILERS: those of Debian 12, and of
# Debian 13.
_DEVICE_COMPILERS = ["spirv-val"] + [
    "%s-%s" % (program, version)
    for version in ["14", "19"]
    for program in ["clang", "ld.lld", "llvm-spirv"]
]

# By group: what generates code, and what tests look for when they run. Without such inputs Bazel would show what a test said
# before the package was there.
_GROUPS = {
    "apt_repository": ["/usr/bin/apt-ftparchive", "/usr/bin/gpg"],
    "chromium": ["/usr/bin/chromium"],
    "clang": ["/usr/bin/clang-14", "/usr/bin/clang++-14", "/usr/bin/clang-19", "/usr/bin/clang++-19"],
    "cmake": ["/usr/bin/cmake"],
    "cuda_compilers": ["/usr/local/cuda/bin/nvcc", "/usr/local/cuda/bin/ptxas", "/usr/local/cuda/lib64/libcudart.so"],
    "cuda_toolkit": ["/usr/local/cuda/lib64/stubs/libcuda.so"],
    "gcc": ["/usr/bin/gcc"],
    "hydra": ["/usr/bin/mpiexec.hydra"],
    "level_zero_loader": ["/usr/lib/x86_64-linux-gnu/libze_loader.so.1"],
    "lintian": ["/usr/bin/lintian"],
    "mpich_library": ["/usr/lib/x86_64-linux-gnu/libmpich.so.12"],
    "mandoc": ["/usr/bin/mandoc"],
    "numpy": ["/usr/lib/python3/dist-packages/numpy/__init__.py"],
    "opencl": ["/usr/lib/x86_64-linux-gnu/libOpenCL.so.1", "/usr/lib/x86_64-linux-gnu/libpocl.so.2"],
    "openmpi_library": ["/usr/lib/x86_64-linux-gnu/libmpi.so.40"],
    "orterun": ["/usr/bin/orterun", "/usr/bin/prterun", "/usr/lib/x86_64-linux-gnu/libpmix.so.2"],
    "patchelf": ["/usr/bin/patchelf"],
    "prometheus": ["/usr/bin/prometheus", "/usr/bin/promtool"],
    "protoc": ["/usr/bin/protoc", "/usr/bin/grpc_cpp_plugin"],
    "rpm": ["/usr/bin/rpm", "/usr/bin/rpmbuild"],
    "slurm": [
        "/usr/bin/sbatch",
        "/usr/lib/x86_64-linux-gnu/libpmi2.so.0",
        "/usr/lib/x86_64-linux-gnu/libpmix.so",
        "/usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix.so",
        "/usr/sbin/munged",
        "/usr/sbin/slurmctld",
        "/usr/sbin/slurmd",
    ],
    "systemd_analyze": ["/usr/bin/systemd-analyze"],
}

# Headers of GPU vendors, which Ferry's own declarations are compared with, and OpenCL's: by vendor, the folders to include and what of them
# is looked at. The first that is there counts.
_VENDOR_HEADERS = {
    "cuda_headers": [("/usr/local/cuda/include", ["cuda.h", "cudaTypedefs.h"])],
    "hip_headers": [("/opt/rocm/include", ["hip"]), ("/usr/include", ["hip"])],
    "opencl_headers": [("/usr/include", ["CL"])],
}

def _link(ctx, path):
    ctx.symlink(path, "files" + path)

def _group(name, patterns):
    return "filegroup(name = %s, srcs = glob(%s))" % (repr(name), repr(patterns))

def _installed_impl(ctx):
    build = ["package(default_visibility = [\"//visibility:public\"])", "exports_files([\"files/usr/bin/gcc\"])"]
    for name, paths in _GROUPS.items():
        for path in paths:
            _link(ctx, path)
        build.append(_group(name, ["files" + path for path in paths]))

    # With images that another machine has compiled, nothing is compiled here.
    images = ctx.os.environ.get("FERRY_DEVICE_IMAGES", "")
    compilers = ctx.os.environ.get("FERRY_DEVICE_COMPILERS", "/usr/bin")
    if images:
        ctx.symlink(images, "device_images")
    for program in _DEVICE_COMPILERS:
        if not images:
            ctx.symlink(compilers + "/" + program, "device_compilers/" + program)
    build += [_group("device_compilers", ["device_compilers/*"]), _group("device_images", ["device_images/*"])]

    for vendor, folders in _VENDOR_HEADERS.items():
        headers = []
        for folder, names in folders:
            for name in names:
                _link(ctx, folder + "/" + name)
                path = "files%s/%s" % (folder, name)
                headers += [path, path + "/**"]  # a header, or a folder of them
        build.append("cc_library(name = %s, hdrs = glob(%s), includes = %s)" % (
            repr(vendor),
            repr(headers),
            repr(["files" + folder for folder, _ in folders]),
        ))
        build.append(_group(vendor.replace("headers", "header_files"), headers))
    # An archive, where the distribution has one: a program then depends on no release of it.
    archives = ["/usr/lib/%s/libboost_context.a" % folder for folder in ["x86_64-linux-gnu", "aarch64-linux-gnu"]] + [
        "/usr/lib64/libboost_context.a",
    ]
    for path in archives:
        _link(ctx, path)
    build.append("cc_library(name = \"boost_context\", linkopts = [\"-l:libboost_context.a\"] if glob(%s) else [\"-lboost_context\"])" %
                 repr(["files" + path for path in archives]))
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", "\n".join(build) + "\n")
    ctx.file("defs.bzl", "DEVICE_COMPILERS = %s\n" % repr(compilers))

_installed = repository_rule(
    implementation = _installed_impl,
    environ = [
        "FERRY_DEVICE_COMPILERS",
        "FERRY_DEVICE_IMAGES",
    ],
)

def _c_toolchain_impl(ctx):
    if ctx.path("/usr/bin/gcc").exists:
        ctx.path(Label("@installed//:files/usr/bin/gcc"))  # another gcc is asked again where its headers are
    cc_autoconf_impl(ctx)

_c_toolchain = repository_rule(
    implementation = _c_toolchain_impl,
    configure = True,
    environ = [  # as Bazel's own rule, of what concerns Linux
        "ABI_LIBC_VERSION",
        "ABI_VERSION",
        "BAZEL_COMPILER",
        "BAZEL_CXXOPTS",
        "BAZEL_HOST_SYSTEM",
        "BAZEL_LINKLIBS",
        "BAZEL_LINKOPTS",
        "BAZEL_LLVM_COV",
        "BAZEL_TARGET_CPU",
        "BAZEL_TARGET_LIBC",
        "BAZEL_TARGET_SYSTEM",
        "BAZEL_USE_LLVM_NATIVE_COVERAGE",
        "CC",
        "CC_TOOLCHAIN_NAME",
        "CPLUS_INCLUDE_PATH",
        "GCOV",
    ],
)

def installed():
    """Declares @installed, and @local_config_cc in place of Bazel's own; called once from WORKSPACE."""
    _installed(name = "installed")
    _c_toolchain(name = "local_config_cc")

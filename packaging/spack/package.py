# Recipe for Spack: put this file into packages/ferry/ of a repository of yours (spack repo create),
# and say where Ferry's sources are:
#   spack repo add REPOSITORY
#   spack dev-build --source-path CLONE ferry@main
from spack.package import *


class Ferry(Package):
    """Moves buffers, in host or GPU memory, between the processes of a parallel job: a daemon per
    node, a light library, and MPI 5.0 with its standard binary interface."""

    homepage = "https://ferry.invalid"
    has_code = False  # `spack dev-build` brings the sources

    license("Apache-2.0")

    version("main")

    provides("mpi@5.0")

    depends_on("bazel@4:5", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("abseil-cpp")
    depends_on("benchmark", type="build")
    depends_on("boost +system")
    depends_on("cli11", type="build")
    depends_on("fmt")
    depends_on("googletest +gmock", type="build")
    depends_on("grpc")
    depends_on("hwloc")
    depends_on("libfabric@1.17:", type=("build", "link", "run"))  # opened when it is needed
    depends_on("libpng")
    depends_on("libseccomp")
    depends_on("nlohmann-json", type="build")
    depends_on("openssl")
    depends_on("prometheus-cpp")
    depends_on("protobuf")
    depends_on("spdlog +shared")
    depends_on("systemd")
    depends_on("tomlplusplus", type="build")

    conflicts("platform=darwin", msg="Ferry needs Linux: memfd, pidfd, signalfd")

    def install(self, spec, prefix):
        Executable("./dev")("install", str(prefix))

    def setup_run_environment(self, env):
        env.set("FERRY_ROOT", self.prefix)
        env.prepend_path("PATH", self.prefix.lib.ferry.bin)
        env.prepend_path("LD_LIBRARY_PATH", self.spec["libfabric"].prefix.lib)

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.lib.ferry.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.lib.ferry.bin, "mpicxx")

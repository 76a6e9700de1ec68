"""The GPU backends that can be measured and tested here, and what each of them runs on.

A folder of programs is Bazel's out/bin, or one that tests/gpu/bundle.sh has filled: then it holds a folder
lib, with the shared libraries that the programs need.
"""

import os
import signal
import subprocess

PROGRAM = "benchmarks/gpu/gpu"
HIP_ON_CUDA = "tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so"
LEVEL_ZERO_LOADER = "lib/stand_ins/libze_loader.so.1"
# A folder for each vendor, with its library's stand-in by the library's own name; the loader is beside.
STAND_INS = "lib/stand_ins"
# Beside lib, for machines whose own are older than those that the programs were built with.
GCC_LIBRARIES = "lib/gcc"
LIMIT_S = 120
# A launcher ends what it has started when it is asked to.
GRACE_S = 5


def run_limited(command, limit_s, **options):
    """As subprocess.run, with all that it says; past the limit it is ended, with its children, as code 124."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          **options) as process:
        try:
            said, complaints = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            said, complaints = end(process)
            return subprocess.CompletedProcess(command, 124, said, f"{complaints}\ntook longer than {limit_s:.0f} s")
        except BaseException:
            end(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, complaints)


def end(process):
    """Ends a process that leads a session; what it has said since it began."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


class Target:
    """One backend, on a device or on what stands for one."""

    def __init__(self, key, backend, environment, kind):
        self.key = key  # in file names and rows
        self.backend = backend
        self.environment = environment
        self.kind = kind  # what it is if no device: "stand-in in software", "emulated"
        self.version = ""
        self.device = ""

    def title(self):
        label = f"`{self.backend}`: {self.device}, {self.version}"
        return f"{label} ({self.kind})" if self.kind else label


class Programs:
    """The programs of one folder."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.libraries = []
        if os.path.isdir(self.path("lib")):
            self.libraries = [self.path("lib")]
            if self._run(Target("", "host", {}, ""), PROGRAM, ["info"]).returncode != 0:
                self.libraries.append(self.path(GCC_LIBRARIES))

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, target):
        found = {**os.environ, "FERRY_GPU_BACKEND": target.backend, **target.environment}
        paths = self.libraries + [found[name] for name in ["LD_LIBRARY_PATH"] if found.get(name)]
        if paths:
            found["LD_LIBRARY_PATH"] = ":".join(paths)
        return found

    def _run(self, target, program, arguments, limit_s=LIMIT_S):
        """What it said, also if it failed or took too long."""
        command = [self.path(program)] + arguments
        try:
            return run_limited(command, limit_s, cwd=self.folder, env=self.environment(target))
        except OSError as error:
            return subprocess.CompletedProcess(command, 127, "", str(error))

    def run(self, target, program, arguments, limit_s=LIMIT_S):
        return self._run(target, program, [str(argument) for argument in arguments], limit_s)

    def run_job(self, target, flags, program, arguments, limit_s=LIMIT_S):
        """Ranks, with daemons of their own."""
        flags = ["--private", "--ferryd", self.path("daemon/ferryd"), "--no-label"] + flags
        return self.run(target, "tools/ferryrun/ferryrun", flags + [self.path(program)] + arguments, limit_s)

    def why_not(self, target):
        """Empty if the backend can be opened; the target then knows its device."""
        result = self.run(target, PROGRAM, ["info"])
        if result.returncode != 0:
            return (result.stderr.strip() or "it ended without a word").removeprefix("gpu: ")
        _, target.version, target.device = result.stdout.strip().removeprefix("gpu ").split("|")
        return ""

    def devices(self):
        """([Target], {backend: why it cannot be opened}): on the GPUs of this machine."""
        found, reasons = [], {}
        for backend in ("cuda", "hip", "level_zero"):
            target = Target(backend, backend, {}, "")
            reason = self.why_not(target)
            if reason:
                reasons[backend] = reason
            else:
                found.append(target)
        # AMD's interface on NVIDIA's GPU: the backend is tested, if not its vendor.
        if "hip" in reasons and "cuda" not in reasons and os.path.exists(self.path(HIP_ON_CUDA)):
            target = Target("hip_on_cuda", "hip", {"FERRY_HIP_LIBRARY": self.path(HIP_ON_CUDA)},
                            "HIP's calls made of CUDA's")
            if not self.why_not(target):
                found.append(target)
        return found, reasons

    def stand_ins(self):
        """Those that can be opened."""
        level_zero = {"ZE_ENABLE_ALT_DRIVERS": self.path("tests/fixtures/level_zero/libferry_level_zero.so")}
        if os.path.exists(self.path(LEVEL_ZERO_LOADER)):
            level_zero["FERRY_LEVEL_ZERO_LIBRARY"] = self.path(LEVEL_ZERO_LOADER)
        software = "stand-in in software"
        targets = [
            Target("cuda_stand_in", "cuda",
                   {"FERRY_CUDA_LIBRARY": self.path("tests/fixtures/cuda/libcuda_13.so")}, software),
            Target("hip_stand_in", "hip",
                   {"FERRY_HIP_LIBRARY": self.path("tests/fixtures/hip/libamdhip64_6.so")}, software),
            Target("level_zero_stand_in", "level_zero", level_zero, software)]
        return [target for target in targets + [self.host()] if not self.why_not(target)]

    def as_programs_find_it(self, target):
        """The same where nothing names backend or library: programs that are linked with the vendor's find both."""
        environment = {"FERRY_GPU_BACKEND": "auto"}
        if target.kind:
            folders = [self.path(STAND_INS), self.path(f"{STAND_INS}/{target.backend}")]
            folders += [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
            environment["LD_LIBRARY_PATH"] = ":".join(folders)
            if "ZE_ENABLE_ALT_DRIVERS" in target.environment:
                environment["ZE_ENABLE_ALT_DRIVERS"] = target.environment["ZE_ENABLE_ALT_DRIVERS"]
                environment["ZE_FIXTURE"] = "atomics,imports,devices2"
        return Target(target.key, target.backend, environment, target.kind)

    def host(self):
        return Target("host", "host", {}, "emulated")

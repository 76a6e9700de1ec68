"""The GPU backends that can be measured and tested here, and what each of them runs on.

A folder of programs is Bazel's out/bin, or one that tests/gpu/bundle.sh has filled: then it holds a folder
lib, with the shared libraries that the programs need.
"""

import os
import subprocess

PROGRAM = "benchmarks/gpu/gpu"
HIP_ON_CUDA = "tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so"
LEVEL_ZERO_LOADER = "lib/stand_ins/libze_loader.so.1"
# Beside lib, for machines whose own are older than those that the programs were built with.
GCC_LIBRARIES = "lib/gcc"
LIMIT_S = 120


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
        found = dict(os.environ, FERRY_GPU_BACKEND=target.backend, **target.environment)
        paths = self.libraries + [found[name] for name in ["LD_LIBRARY_PATH"] if found.get(name)]
        if paths:
            found["LD_LIBRARY_PATH"] = ":".join(paths)
        return found

    def _run(self, target, program, arguments, limit_s=LIMIT_S):
        """What it said, also if it failed or took too long."""
        command = [self.path(program)] + arguments
        try:
            return subprocess.run(command, cwd=self.folder, env=self.environment(target), timeout=limit_s,
                                  capture_output=True, text=True, check=False)
        except OSError as error:
            return subprocess.CompletedProcess(command, 127, "", str(error))
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"took longer than {limit_s} s")

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

    def host(self):
        return Target("host", "host", {}, "emulated")

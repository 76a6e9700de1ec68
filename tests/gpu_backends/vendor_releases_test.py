#!/usr/bin/python3
"""Ferry's declarations against the headers of every release of the vendors that PyPI and Debian have; and the example of
SYCL, compiled with Intel's headers as C++, which is all that can be had without Intel's compiler.

Downloads them (a gigabyte, of which the headers are kept in a cache: /var/tmp/ferry-vendor-headers-UID, or
FERRY_VENDOR_HEADERS); skipped where that cannot be done.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path[:0] = ["tests/gpu_backends", "tests/support"]
import skips  # noqa: E402
import vendor_interface as interface  # noqa: E402
import vendor_interface_test as comparison  # noqa: E402

LIMIT_S = 600
CUDA_TESTS = ["tests/gpu_backends/cuda_abi_test.cc", "tests/fixtures/cuda/program_abi_test.cc"]
HIP_TESTS = ["tests/gpu_backends/hip_abi_test.cc", "tests/fixtures/hip/program_abi_test.cc"]
# By release: the package, and where it has its headers. The oldest is the first with all that Ferry asks for.
CUDA = {release: (f"nvidia-cuda-runtime-cu11=={release}.*", "nvidia/cuda_runtime/include") for release in ("11.7", "11.8")}
CUDA.update({f"12.{minor}": (f"nvidia-cuda-runtime-cu12==12.{minor}.*", "nvidia/cuda_runtime/include")
             for minor in (0, 1, 2, 3, 4, 5, 6, 8, 9)})
CUDA.update({f"13.{minor}": (f"nvidia-cuda-runtime==13.{minor}.*", "nvidia/cu13/include") for minor in range(6)})
# Triton brings AMD's headers: HIP 6.1 and 7.
SYCL = {release: (f"intel-sycl-rt=={release}", f"intel_sycl_rt-{release}.data/data/include")
        for release in ("2025.2.2", "2026.2.0")}
SYCL_EXAMPLE = "examples/sycl_exchange"
HIP = {"6": ("triton==3.0.0", "triton/backends/amd/include"), "7": ("triton==3.9.0", "triton/backends/amd/include")}


def cache():
    folder = os.environ.get("FERRY_VENDOR_HEADERS", f"/var/tmp/ferry-vendor-headers-{os.geteuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def call(command, cwd):
    """What it said where it failed, else nothing."""
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=LIMIT_S, check=False)
    return "" if done.returncode == 0 else (done.stdout.strip().splitlines() or ["it said nothing"])[-1]


def keep(source, name):
    """Moves a folder of headers into the cache at once: what is there is whole."""
    place = os.path.join(cache(), name)
    if not os.path.exists(place):
        shutil.copytree(source, place + ".part", dirs_exist_ok=True)
        os.rename(place + ".part", place)
    return place


class VendorReleasesTest(unittest.TestCase):
    def from_wheel(self, name, package, inside):
        place = os.path.join(cache(), name)
        if os.path.exists(place):
            return place
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            said = call([sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
                         "--retries", "1", "--only-binary", ":all:", package], work)
            if said:
                self.skipTest(f"pip cannot download {package}: {said}")
            [wheel] = glob.glob(os.path.join(work, "*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(work, [file for file in archive.namelist() if file.startswith(inside + "/")])
            return keep(os.path.join(work, inside), name)

    def from_debian(self, name, package, inside):
        place = os.path.join(cache(), name)
        if os.path.exists(place):
            return place
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            said = call(["apt-get", "download", package], work)
            if said:
                self.skipTest(f"apt-get cannot download {package}: {said}")
            [archive] = glob.glob(os.path.join(work, "*.deb"))
            subprocess.run(["dpkg", "-x", archive, os.path.join(work, "files")], check=True)
            return keep(os.path.join(work, "files", inside), name)

    def compare(self, vendor, folder, tests):
        comparison.compare_shapes(self, vendor, folder)
        for source in filter(os.path.exists, tests):
            with tempfile.TemporaryDirectory() as work:
                program = os.path.join(work, "program")
                # AMD's headers are not written for -Wall.
                subprocess.run(["g++", "-std=c++20", "-w", "-I.", "-isystem", folder, source, "-lgtest_main", "-lgtest",
                                "-o", program], check=True)
                done = subprocess.run([program, "--gtest_color=no"], stdout=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("SKIPPED", done.stdout)

    def test_cuda(self):
        for release, (package, inside) in CUDA.items():
            with self.subTest(release):
                folder = self.from_wheel(f"cuda-{release}", package, inside)
                self.compare(interface.VENDORS["cuda"], folder, CUDA_TESTS)

    def test_hip(self):
        for release, (package, inside) in HIP.items():
            with self.subTest(release):
                folder = self.from_wheel(f"hip-{release}", package, inside)
                self.compare(interface.VENDORS["hip"], folder, HIP_TESTS)

    def complaints(self, folder, wrong="", right=""):
        """What the compiler says about the example of SYCL, in which `wrong` stands in place of `right`."""
        with tempfile.TemporaryDirectory() as work:
            for name in ("main.cc", "exchange.h"):
                with open(os.path.join(SYCL_EXAMPLE, name), encoding="utf-8") as source, \
                        open(os.path.join(work, name), "w", encoding="utf-8") as copy:
                    text = source.read()
                    copy.write(text.replace(right, wrong) if name == "main.cc" else text)
            done = subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Iinclude",
                                   "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING", "-isystem", folder,
                                   os.path.join(work, "main.cc")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
        return done.stdout if done.returncode else ""

    def test_the_example_of_sycl(self):
        for release, (package, inside) in SYCL.items():
            with self.subTest(release):
                folder = self.from_wheel(f"sycl-{release}", package, inside)
                self.assertEqual(self.complaints(folder), "")
                # What SYCL gives for another backend is no variant with a list.
                self.assertIn("get_if", self.complaints(folder, "get_native<sycl::backend::opencl>",
                                                        "get_native<sycl::backend::ext_oneapi_level_zero>"))

    def test_debians_hip(self):
        folder = self.from_debian("hip-debian", "libamdhip64-dev", "usr/include")
        self.compare(interface.VENDORS["hip"], folder, HIP_TESTS)


if __name__ == "__main__":
    skips.main()

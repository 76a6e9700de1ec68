#!/usr/bin/python3
"""The functions that Ferry takes from the vendors' libraries, and those of the stand-ins, are the vendors' own.

What is compared comes from the tables in gpu_backends and from the stand-ins' headers themselves, so that nothing added
there is forgotten here. With the vendors' files as far as they are installed on this machine.
"""

import os
import re
import sys
import unittest

sys.path[:0] = ["tests/gpu_backends", "tests/support"]
import skips  # noqa: E402
import vendor_interface as interface  # noqa: E402

CUDA_STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"
HEADERS = {  # the first that is there counts, as in bazel/installed.bzl
    "cuda": ["/usr/local/cuda/include"],
    "hip": ["/opt/rocm/include", "/usr/include"],
}
ZE_LOADER = "/usr/lib/x86_64-linux-gnu/libze_loader.so.1"
# Functions that came later than the oldest releases that Ferry works with.
NEWER = {"cuGetProcAddress_v2", "hipMemGetHandleForAddressRange", "hipStreamGetDevice", "zeMemPutIpcHandle"}
OTHER_LIBRARIES = {"hsa_amd_portable_export_dmabuf"}  # of HIP's


def folder_of(vendor):
    for folder in HEADERS[vendor.name]:
        if os.path.exists(os.path.join(folder, vendor.include)):
            return folder
    return None


class VendorInterfaceTest(unittest.TestCase):
    def folder(self, vendor):
        folder = folder_of(vendor)
        if folder is None:
            self.skipTest(f"{vendor.include} is not in {' or '.join(HEADERS[vendor.name])}")
        return folder

    def test_nothing_declared_is_left_out_of_the_comparison(self):
        for vendor in interface.VENDORS.values():
            with self.subTest(vendor.name):
                self.assertEqual(interface.not_compared(vendor), [])
                self.assertGreater(len(interface.rows_of(vendor)), 40)

    def test_functions_have_the_shapes_of_the_vendors(self):
        for vendor in interface.VENDORS.values():
            with self.subTest(vendor.name):
                compare_shapes(self, vendor, self.folder(vendor))

    def test_cudas_names_are_exported_by_its_library(self):
        if not os.path.exists(CUDA_STUB):
            self.skipTest(f"there is no {CUDA_STUB}: a part of the CUDA toolkit")
        exported = interface.exported(CUDA_STUB)
        cuda = interface.VENDORS["cuda"]
        named = {row.exported for row in interface.rows_of(cuda)} | set(interface.stand_in_functions(cuda))
        self.assertEqual(sorted(named - exported), [])

    def test_level_zeros_names_are_exported_by_the_loader(self):
        if not os.path.exists(ZE_LOADER):
            self.skipTest(f"there is no {ZE_LOADER}: apt-get install libze1")
        text = interface.text_of("gpu_backends/level_zero/level_zero_api.cc")
        rows = re.findall(r'(Required|Optional)\(\s*"(\w+)"', text)
        self.assertGreater(len(rows), 40)
        self.assertEqual(sorted({name for _, name in rows} - interface.exported(ZE_LOADER) - NEWER), [])


def compare_shapes(test, vendor, folder):
    """Of Ferry's table and of the stand-in: every function that the release declares."""
    ours, stand_in = interface.table_shapes(vendor), interface.stand_in_shapes(vendor)
    for known in (ours, stand_in):
        test.assertGreater(len(known), 40)
    names = sorted((set(ours) | set(stand_in)) - OTHER_LIBRARIES)
    declared = interface.declared(vendor, folder)
    test.assertEqual([name for name in names if name not in declared and name not in NEWER], [])
    theirs = interface.vendors_shapes(vendor, folder, [name for name in names if name in declared])
    for name, shape in theirs.items():
        for known in (ours, stand_in):
            test.assertEqual(known.get(name, shape), shape, name)
    if vendor.name == "cuda":
        check_versions(test, folder)


def check_versions(test, folder):
    """cuGetProcAddress is asked for the release that brought a function: cudaTypedefs.h has one type for each."""
    types = interface.text_of(os.path.join(folder, "cudaTypedefs.h"))
    asked = {(row.name, row.version) for row in interface.rows_of(interface.VENDORS["cuda"])}
    stand_in = interface.text_of("tests/fixtures/cuda/cuda_proc_address.cc")
    offered = set(re.findall(r'Of\("(\w+)", (\d+),', stand_in))
    test.assertGreater(len(offered), 40)
    test.assertEqual([f"PFN_{name}_v{version}" for name, version in sorted(asked | offered)
                      if not re.search(rf"\bPFN_{name}_v{version}\b", types)], [])


if __name__ == "__main__":
    skips.main()

"""The headers of GPU vendors where they are installed, for tests that compare Ferry's own
declarations with them. Where they are not, the repository is empty and those tests are skipped.
"""

# Folder of each vendor's headers in the repository: where they may be.
_VENDORS = {
    "cuda": ["/usr/local/cuda/include"],
    "hip": ["/opt/rocm/include", "/usr/include"],
}

# What tells that they are there.
_HEADERS = {
    "cuda": "cuda.h",
    "hip": "hip/hip_runtime_api.h",
}

def _vendor_headers_impl(ctx):
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for vendor, folders in _VENDORS.items():
        ctx.file(vendor + "/README", "Headers of this vendor, if they are installed.\n")
        for folder in folders:
            if ctx.path(folder + "/" + _HEADERS[vendor]).exists:
                files = ["cuda.h", "cudaTypedefs.h"] if vendor == "cuda" else ["hip"]
                for name in files:
                    ctx.symlink(folder + "/" + name, vendor + "/" + name)
                break
        build += """
cc_library(
    name = "%s",
    hdrs = glob(["%s/**/*.h", "%s/**/*.hpp"]),
    includes = ["%s"],
)
""" % (vendor, vendor, vendor, vendor)
    ctx.file("BUILD", build)

_vendor_headers = repository_rule(implementation = _vendor_headers_impl, local = True)

def vendor_headers():
    """Declares @vendor_headers; called once from WORKSPACE."""
    _vendor_headers(name = "vendor_headers")

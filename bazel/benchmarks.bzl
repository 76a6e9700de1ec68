"""What a benchmark is made of, for the test that looks whether it is whole (tests/benchmarks/names_test.py)."""

def benchmark():
    """Last in the package of a benchmark: its scripts, and all programs above, as `whole`."""
    programs = [
        name
        for name, rule in native.existing_rules().items()
        if rule["kind"] == "cc_binary" or name == "examples"
    ]
    native.filegroup(
        name = "whole",
        testonly = True,
        srcs = native.glob(["run", "*.py"]) + programs,
        visibility = ["//tests/benchmarks:__pkg__"],
    )

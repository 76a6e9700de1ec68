"""What a benchmark is made of, for the test that looks whether it is whole (tests/benchmarks/names_test.py)."""

def benchmark():
    """Last in the package of a benchmark: its `scripts`, and they with all programs above as `whole`."""
    programs = [
        name
        for name, rule in native.existing_rules().items()
        if rule["kind"] == "cc_binary" or name == "examples"
    ]
    scripts = native.glob(["run", "*.py"])
    for name, files in {"scripts": scripts, "whole": scripts + programs}.items():
        native.filegroup(
            name = name,
            testonly = True,
            srcs = files,
            visibility = ["//tests:__subpackages__"],
        )

"""Fuzzers: an entry point each, run by libFuzzer (`./dev fuzz NAME`) or over its corpus, as a test."""

load("//bazel:tests.bzl", "cc_library")

def _fuzzer(name, deps, size = "small", env = {}, prelude = None, tags = [], mutations = 8):
    cc_library(
        name = name + "_entry",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        alwayslink = True,
        prelude = prelude,
        deps = deps + [":fuzz_input"],
    )
    native.cc_test(
        name = name + "_replay_test",
        size = size,
        args = [
            "tests/fuzz/corpus/" + name,
            str(mutations),
        ],
        data = native.glob(["corpus/" + name + "/*"]),
        env = env,
        linkstatic = True,
        tags = tags,
        deps = [
            ":" + name + "_entry",
            ":replay",
        ],
    )
    native.cc_binary(
        name = name + "_fuzzer",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        linkstatic = True,
        tags = ["manual"],
        deps = [":" + name + "_entry"],
    )

def fuzzers(table):
    """Of NAME_fuzz.cc: NAME_fuzzer, for --config=fuzz only, and NAME_replay_test, for every compiler: each input, and mutations of it.

    Args:
      table: by NAME what it links, or a dict of `deps`, `mutations` of each input, and attributes of the test.
    """
    for name, row in table.items():
        attributes = row if type(row) == "dict" else {"deps": row}
        _fuzzer(name = name, **attributes)

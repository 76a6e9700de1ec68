"""Fuzzers: an entry point each, run by libFuzzer (`./dev fuzz NAME`) or over its corpus, as a test."""

load("//bazel:tests.bzl", "cc_library")

def ferry_fuzz(name, srcs, deps, size = "small", env = {}, prelude = None, tags = []):
    """NAME_fuzzer, for --config=fuzz only, and NAME_replay_test, for every compiler."""
    cc_library(
        name = name + "_entry",
        testonly = True,
        srcs = srcs,
        alwayslink = True,
        prelude = prelude,
        deps = deps + [":fuzz_input"],
    )
    native.cc_test(
        name = name + "_replay_test",
        size = size,
        args = ["tests/fuzz/corpus/" + name],
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

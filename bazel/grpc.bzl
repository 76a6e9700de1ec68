"""gRPC linked statically, for the programs that start with every job.

The distribution's gRPC needs some fifty shared libraries, most of them Abseil's, and has thousands of symbols to be
found in them: that takes a process longer than a call. Archives have their symbols bound when they are linked.

Abseil comes from archives, too; OpenSSL, protobuf, c-ares and zlib stay shared, and so does all in tests. Under a sanitizer, code that is not
instrumented has to stay in libraries of its own, which the sanitizer is told to leave alone.
"""

# What gRPC 1.51 needs of Abseil.
_ABSEIL = [
    "bad_optional_access",
    "bad_variant_access",
    "base",
    "city",
    "civil_time",
    "cord",
    "cord_internal",
    "cordz_functions",
    "cordz_handle",
    "cordz_info",
    "debugging_internal",
    "demangle_internal",
    "exponential_biased",
    "graphcycles_internal",
    "hash",
    "hashtablez_sampler",
    "int128",
    "log_severity",
    "low_level_hash",
    "malloc_internal",
    "random_distributions",
    "random_internal_platform",
    "random_internal_pool_urbg",
    "random_internal_randen",
    "random_internal_randen_hwaes",
    "random_internal_randen_hwaes_impl",
    "random_internal_randen_slow",
    "random_internal_seed_material",
    "random_seed_gen_exception",
    "random_seed_sequences",
    "raw_hash_set",
    "raw_logging_internal",
    "spinlock_wait",
    "stacktrace",
    "status",
    "statusor",
    "str_format_internal",
    "strerror",
    "strings",
    "strings_internal",
    "symbolize",
    "synchronization",
    "throw_delegate",
    "time",
    "time_zone",
]

def _unless_sanitized(options):
    return select({
        "//bazel:sanitizers": [],
        "//conditions:default": ["-Wl,--as-needed"] + options,
    })

def _archives(names):
    return ["-l:lib%s.a" % name for name in names + ["gpr", "address_sorting", "upb"]]

def _program(names, libraries):
    return _unless_sanitized(
        ["-Wl,--start-group"] + _archives(names) +
        ["-l:libabsl_%s.a" % name for name in _ABSEIL] + ["-Wl,--end-group"] +
        ["-l" + library for library in libraries],
    )

# linkopts of a cc_binary. Those of //third_party:grpc, which come after them, then find nothing left to do.
GRPC = _program(["grpc++", "grpc"], ["re2", "ssl", "crypto", "cares", "z"])

# For callers at Unix sockets only: without TLS, and so without OpenSSL.
GRPC_WITHOUT_TLS = _program(["grpc++_unsecure", "grpc_unsecure"], ["cares", "z"])

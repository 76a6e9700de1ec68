"""Generates C++ and gRPC code from .proto files with the distribution's protoc."""

def ferry_grpc_library(name, srcs, deps = [], visibility = None):
    """A cc_library of the messages and services in `srcs` (which import each other by path from the root)."""
    outs = []
    for src in srcs:
        stem = src[:-len(".proto")]
        outs += [stem + suffix for suffix in [".pb.h", ".pb.cc", ".grpc.pb.h", ".grpc.pb.cc"]]
    native.genrule(
        name = name + "_gen",
        srcs = srcs,
        outs = outs,
        cmd = "/usr/bin/protoc -I. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin $(SRCS)",
        tools = ["@installed//:protoc"],  # code of another release does not compile with its headers
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        copts = ["-w", "-O1"],  # generated code is not ours to lint; the control plane's (prelude.bzl)
        visibility = visibility,
        deps = deps + ["//third_party:grpc"],
    )

// The headers that tests of services include most, precompiled (prelude.bzl).
#include "bazel/grpc_prelude.h"
#include "bazel/test_prelude.h"

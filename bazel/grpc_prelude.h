// The headers that services and their callers include most, precompiled (prelude.bzl).
#include <grpcpp/grpcpp.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "bazel/std_prelude.h"
#include "common/log.h"
#include "proto/control.grpc.pb.h"

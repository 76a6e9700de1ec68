// Ferry's own kernels, compiled for every device (bazel/device_code.bzl).
#include "gpu_backends/device/kernels.h"
#include "gpu_backends/device/reductions.h"
#include "gpu_backends/device/ring_kernels.h"

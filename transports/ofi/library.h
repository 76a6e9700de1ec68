// libfabric's library, opened by whoever needs it first. Opening takes some 0.1 s, since the
// libraries of its providers come along and look for their devices, so a program that only may need
// it should not be linked with it: ferryd for --version, ferryctl for all but measuring.
//
// What a library reads of the environment it reads then (environment.h). Any thread.
#pragma once

#include <rdma/fabric.h>

#include "common/status.h"

namespace ferry::transport {

// The functions that the library exports; all others are inline and go through its objects.
struct Libfabric {
  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_version) version = nullptr;
  decltype(&fi_strerror) strerror = nullptr;
};

// Opens it at the first call, which blocks for that long; it stays until the process ends.
// kNotFound: there is none; kVersionMismatch: it lacks a function.
StatusOr<const Libfabric*> OpenLibfabric();

// For those that hold something of it, so that it is open.
const Libfabric& OpenedLibfabric();

}  // namespace ferry::transport

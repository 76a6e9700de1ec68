// libfabric's library, opened at its first use. Opening it with the libraries of all its providers
// takes 0.2 s, since two of them measure the processor's clock. So programs that do not always need
// it are not linked with it (ferryd for --version, ferryctl for all but measuring), and those two
// are left out unless they are wanted. Where there is no RDMA card, kernel_symbols.cc spares it the
// file that the verbs provider would read.
//
// The library reads the environment at that time (environment.h). Any thread.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string>

#include "common/error_code.h"
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

enum class Providers {
  kCommon,  // all but psm (TrueScale InfiniBand) and psm2 (Omni-Path)
  kAll,
};

// Opens libfabric at the first call, which blocks for that long and decides about the providers; it
// stays open until the process ends. kNotFound: there is none; kVersionMismatch: it lacks a
// function.
StatusOr<const Libfabric*> OpenLibfabric(Providers providers = Providers::kCommon);

// Returns the open library, for callers that hold one of its objects, so that it must be open.
const Libfabric& OpenedLibfabric();

// Returns Ferry's code for a failed post or completion. `fabric_error` is positive (FI_ECANCELED,
// ...).
ErrorCode OperationError(int fabric_error);

// Returns the status of a failed set-up call: "what: words of libfabric". The sign of
// `fabric_error` does not matter.
Status SetUpError(int fabric_error, const std::string& what);

// Owners of libfabric's objects: closed once, in the reverse order of declaration.
struct FidCloser {
  template <typename Fid>
  void operator()(Fid* object) const {
    fi_close(&object->fid);
  }
};
template <typename Fid>
using FidPtr = std::unique_ptr<Fid, FidCloser>;

struct InfoDeleter {
  void operator()(fi_info* info) const { OpenedLibfabric().freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, InfoDeleter>;

// Returns an empty fi_info, to be filled in as hints; null: no memory.
inline InfoPtr AllocateInfo() { return InfoPtr(OpenedLibfabric().dupinfo(nullptr)); }

}  // namespace ferry::transport

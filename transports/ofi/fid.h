// Owners of libfabric's objects: closed once, in the reverse order of declaration.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>

#include "transports/ofi/library.h"

namespace ferry::transport {

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

// An empty one, to be filled in as hints; null: no memory.
inline InfoPtr AllocateInfo() { return InfoPtr(OpenedLibfabric().dupinfo(nullptr)); }

}  // namespace ferry::transport

// The calls of libfabric's `cxi` provider (Slingshot) that we use besides libfabric's own. They are
// declared here because its header, rdma/fi_cxi_ext.h, is not packaged everywhere, and the
// functions are looked up at run time anyway (fi_open_ops). Also the NIC's own form of a counter
// behind a GPU's stores. Counters can be written back into memory, too; ferryd does not do that,
// for a rank could write what ferryd then reads.
//
// Pure but for the two Find functions, which call libfabric: progress thread.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

namespace ferry::transport {

inline constexpr const char* kCxiCounterOps = "cxi_counter_ops";
// Newest first. Versions only append functions: get_dwq_depth came with the fifth.
inline constexpr const char* kCxiDomainOps[] = {"dom_ops_v6", "dom_ops_v5"};

// The number of a NIC's 512 deferred operations that applications may have.
inline constexpr uint32_t kCxiEntries = 504;

// The key of a domain (struct cxi_auth_key); endpoints take that of their domain.
struct CxiAuthKey {
  uint32_t service;
  uint16_t vni;
  uint16_t unused;
};
static_assert(sizeof(CxiAuthKey) == 8);

struct CxiCounterOps {
  int (*set_wb_buffer)(fid* counter, void* buffer, size_t bytes);  // not used
  int (*get_mmio_addr)(fid* counter, void** address, size_t* bytes);
};

struct CxiDomainOps {
  int (*cntr_read)(fid* domain, unsigned int item, uint64_t* value, timespec* time);
  int (*topology)(fid* domain, unsigned int* group, unsigned int* rank_switch, unsigned int* port);
  int (*enable_hybrid_mr_desc)(fid* domain, bool enable);
  size_t (*ep_get_unexp_msgs)(fid_ep* endpoint, fi_cq_tagged_entry* entries, size_t count,
                              fi_addr_t* sources, size_t* found);
  int (*get_dwq_depth)(fid* domain, size_t* depth);
};

// The two functions return the provider's table of calls; null if it has none.
inline CxiCounterOps* FindCxiCounterOps(fid_cntr* counter) {
  void* ops = nullptr;
  const bool found = fi_open_ops(&counter->fid, kCxiCounterOps, 0, &ops, nullptr) == 0;
  return found ? static_cast<CxiCounterOps*>(ops) : nullptr;
}
inline CxiDomainOps* FindCxiDomainOps(fid_domain* domain) {
  for (const char* version : kCxiDomainOps) {
    void* ops = nullptr;
    if (fi_open_ops(&domain->fid, version, 0, &ops, nullptr) == 0) {
      return static_cast<CxiDomainOps*>(ops);
    }
  }
  return nullptr;
}

// ---- A counter behind stores: offsets from what get_mmio_addr gives, in bytes.

inline constexpr size_t kCxiAddOffset = 0;
inline constexpr size_t kCxiAddErrorsOffset = 64;
inline constexpr size_t kCxiResetOffset = 128;
inline constexpr size_t kCxiResetErrorsOffset = 192;
inline constexpr size_t kCxiLeastMmioBytes = kCxiResetErrorsOffset + sizeof(uint64_t);

}  // namespace ferry::transport

// Pages of the NIC's counters that this rank has mapped: a store of 1 there, by a stream, a kernel
// or the rank, starts the next message of one end of a matched pair, with no CPU of ferryd
// (shm::CounterPageWords). ferryd offers them where its NIC's driver lets another process map them.
//
// A page stays mapped for as long as a stream may still store to it; only then does ferryd give the
// counter back to the NIC.
//
// Calling thread: any; a lock is held for the length of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "common/status.h"
#include "common/unique_fd.h"
#include "gpu_backends/api/backend.h"
#include "shm/layout/pair_layout.h"

namespace ferry::client {

class CounterPages {
 public:
  struct Parts {
    std::function<StatusOr<UniqueFd>(uint32_t nic)> ask;  // AttachConnection::CounterPages
    std::function<gpu::GpuBackend*()> backend;            // null: there is none
  };
  explicit CounterPages(Parts parts) : parts_(std::move(parts)) {}
  // No stream stores to a page any more.
  ~CounterPages();
  CounterPages(const CounterPages&) = delete;
  CounterPages& operator=(const CounterPages&) = delete;

  // The word to which a store of 1 makes that start of the end, and each later one; call it before
  // `armed` says so. Null: there is none, or ferryd, the system or the device refuses it; then the
  // doorbell makes them all. Blocks on ferryd for the first page of a NIC.
  uint64_t* Take(shm::PairLayout* end, uint64_t start);
  // Nothing stores for that end any more.
  void Drop(shm::PairLayout* end);

 private:
  struct Page {
    void* base = nullptr;
    uint64_t size_bytes = 0;
    bool is_registered = false;  // with the backend
  };

  int DescriptorOf(uint32_t nic);
  bool Map(int descriptor, uint64_t offset, Page* page);
  void Unmap(const Page& page);

  const Parts parts_;
  std::mutex mutex_;
  std::map<uint32_t, UniqueFd> descriptors_;  // by NIC; not valid: ferryd gives none
  std::map<const shm::PairLayout*, Page> pages_;
};

}  // namespace ferry::client

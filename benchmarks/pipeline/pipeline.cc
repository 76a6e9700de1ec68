// A message from device memory to device memory through staging buffers in the host: copies out,
// "network" (a memcpy from the sender's staging buffer to the receiver's, at a given bandwidth),
// copies in. The device and its link are emulated, with the figures of an Intel DG1
// (gpu_backends/host/link_options.h).
//
//   pipeline ENGINES NETWORK_MB_PER_S REPETITIONS
//
// with 1 or 2 copy engines; 0 leaves the network at memory speed. Prints a line "STAGING MODE
// BLOCKS SIZE MICROSECONDS" for each case, a median; the cases of one size take turns.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "engine/block_plan.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/host/host_backend.h"
#include "gpu_backends/host/link_options.h"

namespace {

using ferry::Status;
using ferry::StatusOr;
using ferry::engine::Block;
using ferry::engine::BlockMode;
using ferry::engine::BlockPlan;
using ferry::engine::BlockRules;
using ferry::gpu::Event;
using ferry::gpu::GpuBackend;
using ferry::gpu::Stream;

constexpr uint64_t kThresholdBytes = 64ULL << 10;
constexpr uint64_t kLargestBytes = 4ULL << 20;
constexpr uint32_t kMostBlocks = 8;

void Check(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "pipeline: %s\n", status.ToString().c_str());
    std::exit(1);
  }
}

template <typename T>
T Take(StatusOr<T> value) {
  Check(value.status());
  return std::move(*value);
}

struct Staging {
  std::string_view name;
  std::byte* sender;
  std::byte* receiver;
};

struct Case {
  const Staging* staging;
  std::string_view mode_name;
  BlockRules rules;
  std::vector<uint64_t> times_ns;
};

// Both nodes: they share a device, as the two processes of the paper did.
class NodePair {
 public:
  NodePair(uint64_t engines, uint64_t network_mb_per_s) : network_mb_per_s_(network_mb_per_s) {
    ferry::gpu::HostBackendOptions options;
    options.link = ferry::gpu::PaperLink(engines);
    backend_ = Take(ferry::gpu::CreateHostBackend(options));
    source_ = Bytes(backend_->AllocateDevice(0, kLargestBytes));
    destination_ = Bytes(backend_->AllocateDevice(0, kLargestBytes));
    pinned_ = {"pinned", Bytes(backend_->AllocatePinned(kLargestBytes)),
               Bytes(backend_->AllocatePinned(kLargestBytes))};
    pageable_ = {"pageable", pageable_memory_[0].data(), pageable_memory_[1].data()};
    out_ = Take(backend_->CreateStream(0));
    in_ = Take(backend_->CreateStream(0));
    for (std::unique_ptr<Event>& event : staged_) {
      event = Take(backend_->CreateEvent(0));
    }
  }

  const Staging& pinned() const { return pinned_; }
  const Staging& pageable() const { return pageable_; }

  // One message; returns how long it took.
  uint64_t Transfer(const Staging& staging, const BlockPlan& plan) {
    const uint64_t begin_ns = ferry::MonotonicNs();
    for (uint32_t i = 0; i < plan.block_count(); ++i) {
      const auto [offset, size] = plan.block(i);
      Check(out_->CopyAsync(staging.sender + offset, source_ + offset, size));
      Check(out_->RecordEvent(staged_[i].get()));
    }
    for (uint32_t i = 0; i < plan.block_count(); ++i) {
      const auto [offset, size] = plan.block(i);
      Check(staged_[i]->Synchronize());
      Send(staging.receiver + offset, staging.sender + offset, size);
      Check(in_->CopyAsync(destination_ + offset, staging.receiver + offset, size));
    }
    Check(in_->Synchronize());
    return ferry::MonotonicNs() - begin_ns;
  }

  // A message of other content than the last, looked at when it has arrived.
  void CheckTransfer(const Staging& staging, const BlockPlan& plan, uint64_t size_bytes) {
    ++seed_;
    std::vector<std::byte> sent(size_bytes);
    for (uint64_t i = 0; i < size_bytes; ++i) {
      sent[i] = static_cast<std::byte>(i + (i >> 8) + seed_);
    }
    std::vector<std::byte> received(size_bytes);
    Check(out_->CopyAsync(source_, sent.data(), size_bytes));
    Transfer(staging, plan);
    Check(out_->CopyAsync(received.data(), destination_, size_bytes));
    Check(out_->Synchronize());
    if (received != sent) {
      Check({ferry::ErrorCode::kCorrupt, "the message did not arrive as it was sent"});
    }
  }

 private:
  void Send(std::byte* destination, const std::byte* source, uint64_t size_bytes) const {
    const uint64_t begin_ns = ferry::MonotonicNs();
    std::memcpy(destination, source, size_bytes);
    if (network_mb_per_s_ != 0) {
      const uint64_t end_ns = begin_ns + size_bytes * 1000 / network_mb_per_s_;
      while (ferry::MonotonicNs() < end_ns) {
        std::this_thread::yield();
      }
    }
  }

  static std::byte* Bytes(StatusOr<void*> memory) {
    return static_cast<std::byte*>(Take(std::move(memory)));
  }

  const uint64_t network_mb_per_s_;
  std::unique_ptr<GpuBackend> backend_;
  std::byte* source_;
  std::byte* destination_;
  std::vector<std::byte> pageable_memory_[2] = {std::vector<std::byte>(kLargestBytes),
                                                std::vector<std::byte>(kLargestBytes)};
  Staging pinned_;
  Staging pageable_;
  std::unique_ptr<Stream> out_;
  std::unique_ptr<Stream> in_;
  std::unique_ptr<Event> staged_[kMostBlocks];
  uint64_t seed_ = 0;
};

std::vector<Case> Cases(const NodePair& nodes, uint64_t size_bytes) {
  std::vector<Case> cases = {{&nodes.pageable(), "naive", {.mode = BlockMode::kNaive}, {}},
                             {&nodes.pinned(), "naive", {.mode = BlockMode::kNaive}, {}},
                             {&nodes.pinned(), "default", {}, {}}};
  if (size_bytes < kThresholdBytes) {
    return cases;
  }
  for (const uint32_t count : {2U, 4U, kMostBlocks}) {
    // Below the threshold too: to see whether it is where it should be.
    BlockRules rules{.mode = BlockMode::kEven, .block_count = count, .threshold_bytes = 0};
    cases.push_back({&nodes.pinned(), "even", rules, {}});
    rules.mode = BlockMode::kAdvanced;
    cases.push_back({&nodes.pinned(), "advanced", rules, {}});
  }
  return cases;
}

void MeasureSize(NodePair& nodes, uint64_t size_bytes, int repetitions) {
  std::vector<Case> cases = Cases(nodes, size_bytes);
  for (const Case& one : cases) {
    nodes.CheckTransfer(*one.staging, BlockPlan(size_bytes, one.rules), size_bytes);
  }
  for (int i = 0; i < repetitions; ++i) {
    for (Case& one : cases) {
      one.times_ns.push_back(nodes.Transfer(*one.staging, BlockPlan(size_bytes, one.rules)));
    }
  }
  for (Case& one : cases) {
    const auto middle = one.times_ns.begin() + repetitions / 2;
    std::nth_element(one.times_ns.begin(), middle, one.times_ns.end());
    std::printf("%s %s %u %llu %.1f\n", one.staging->name.data(), one.mode_name.data(),
                BlockPlan(size_bytes, one.rules).block_count(),
                static_cast<unsigned long long>(size_bytes), static_cast<double>(*middle) / 1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc == 4 ? std::atoi(argv[3]) : 0;
  if (repetitions < 1) {
    std::fprintf(stderr, "usage: pipeline ENGINES NETWORK_MB_PER_S REPETITIONS\n");
    return 2;
  }
  NodePair nodes(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10));
  for (uint64_t size_bytes = 16; size_bytes <= kLargestBytes; size_bytes *= 2) {
    if (size_bytes == 16 || size_bytes >= 4096) {
      MeasureSize(nodes, size_bytes, repetitions);
    }
  }
  return 0;
}

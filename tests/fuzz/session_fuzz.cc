// A session segment in which anything may stand: its requests, its match table, its chains, its
// journal, and the transfers in its inbox. The rank's engine and the worker's run over it, and the
// worker copies what it finds.
#include <array>
#include <cstdint>
#include <cstdlib>

#include "engine/transfer.h"
#include "shm/atomic.h"
#include "shm/fault.h"
#include "tests/engine/rank_fixture.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/open_lanes.h"

namespace ferry::engine {
namespace {

using fuzz::FuzzInput;

constexpr NodeOptions kNode{
    .local_ranks = 2, .remote_ranks = 1, .request_limit = 16, .unexpected_limit = 16};
constexpr uint32_t kMaxSteps = 48;

// The memory that a process may touch: an arena. Beyond it there is memory that no process, or only
// others, may touch.
class ArenaMemory final : public MemoryAccess {
 public:
  Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) override {
    Reach reach;
    if (where.address > arena_.size() || size_bytes > arena_.size() - where.address) {
      reach.error = rank % 2 == 0 ? ErrorCode::kInvalidBuffer : ErrorCode::kOk;
    } else {
      reach.mapped = arena_.data() + where.address;
    }
    return reach;
  }
  ErrorCode Copy(const Reach& destination, const Reach& source, uint64_t size_bytes) override {
    std::memmove(destination.mapped, source.mapped, size_bytes);
    return ErrorCode::kOk;
  }

 private:
  std::array<std::byte, 65536> arena_{};
};

class SessionFuzz {
 public:
  SessionFuzz() {
    fuzz::OpenLanes(node_.view(0).inbox);
    fuzz::OpenLanes(node_.view(1).inbox);
  }
  void Run(FuzzInput& input) {
    for (uint32_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
      Step(input);
    }
    for (uint32_t n = 0; worker_.Progress() != 0; ++n) {
      if (n > 1000) {
        abort();  // it never comes to rest
      }
      daemon_.Take();
    }
    (void)shm::Describe(shm::ReadFault(session().fault));
  }

 private:
  shm::SessionLayout& session() { return *node_.view(0).layout; }
  bool CanStart() {
    const uint32_t fresh = shm::LoadRelaxed(session().request_fresh);
    return fresh != 0 && fresh < kNode.request_limit - 1 && node_[0].poison() == ErrorCode::kOk;
  }
  void Step(FuzzInput& input) {
    const auto tag = static_cast<int32_t>(input.Below(3));
    switch (input.Below(10)) {
      case 0:
      case 1:
      case 2:
        Scribble(input);
        break;
      case 3:
        if (CanStart()) {
          node_[0].Irecv(static_cast<int32_t>(input.Below(4)) - 1, tag - 1, 16);
        }
        break;
      case 4:
        if (CanStart()) {
          node_[0].IsendByRequest(1 + input.Below(2), tag, std::string(input.Below(64), 'x'));
        }
        break;
      case 5:
        if (shm::LoadRelaxed(node_.view(1).layout->request_fresh) + 1 < kNode.request_limit) {
          node_[1].Isend(0, tag, std::string(size_t{300} * input.Below(64), 'x'));
        }
        break;
      case 6:
        worker_.Progress();
        break;
      case 7:
        node_[input.Below(2)].Progress();
        break;
      case 8:
        Copy(input);
        break;
      default:
        if (input.Below(2) == 0) {
          node_.MarkDead(0, 1 + input.Below(2));
        } else {
          (void)worker_.engine().RecoverFromDeadHolder();
        }
        break;
    }
  }
  // One word, where it hurts: not among the payloads.
  void Scribble(FuzzInput& input) {
    const SessionView& view = node_.view(0);
    const uint32_t area = input.Below(6);
    std::byte* base = view.base();
    uint64_t size_bytes = offsetof(shm::SessionLayout, to_daemon) + 4096;
    if (area == 1) {
      base = reinterpret_cast<std::byte*>(view.request(0));
      size_bytes = kNode.request_limit * sizeof(shm::RequestLayout);
    } else if (area == 2) {
      base = reinterpret_cast<std::byte*>(view.match());
      size_bytes = sizeof(shm::MatchTableLayout);
    } else if (area == 3) {
      base = reinterpret_cast<std::byte*>(view.match() + 1);
      size_bytes = kNode.unexpected_limit * sizeof(shm::MatchEntry);
    } else if (area == 4) {
      base = reinterpret_cast<std::byte*>(view.inbox.transfer(1));
      size_bytes = (kNode.request_limit - 1) * sizeof(shm::TransferLayout);
    } else if (area == 5) {  // the words of each peer
      base = reinterpret_cast<std::byte*>(view.by_rank.peers);
      size_bytes = static_cast<uint64_t>(reinterpret_cast<std::byte*>(view.match()) - base);
    }
    const uint64_t word = (input.Take<uint16_t>() * sizeof(uint32_t)) % size_bytes;
    const uint32_t value = input.Below(2) == 0 ? input.Below(20) : input.Take<uint32_t>();
    std::memcpy(base + word, &value, sizeof(value));
    if (area == 2 && input.Below(2) == 0) {  // every bucket: none need be guessed
      for (uint32_t kind = 0; kind < shm::kPatternKinds; ++kind) {
        for (uint32_t bucket = 0; bucket < shm::kMatchBuckets; ++bucket) {
          view.match()->posted[bucket].first = value;
          view.match()->unexpected[kind][bucket].first = value;
        }
      }
    }
  }
  void Copy(FuzzInput& input) {
    shm::TransferLayout* transfer =
        node_.view(0).inbox.transfer(1 + input.Below(kNode.request_limit - 1));
    const auto generation = static_cast<uint32_t>(shm::LoadRelaxed(transfer->claim) >> 32);
    const OwnEnd own{input.Below(2) == 0, input.Below(3), input.Below(3), {0, 0, 64}, 4096};
    const OwnEnd* end = input.Below(2) == 0 ? &own : nullptr;
    for (uint32_t n = 0; CopyChunk(*transfer, generation, memory_, end) == ChunkResult::kCopied;
         ++n) {
      if (n > 100) {
        abort();  // more chunks than the arena has room for
      }
    }
    (void)Look(*transfer, generation);
  }

  TestNode node_{kNode};
  TestRank worker_{node_, 0, Runner::kWorker};
  FakeDaemon daemon_{node_.view(0)};
  ArenaMemory memory_;
};

}  // namespace
}  // namespace ferry::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::engine::SessionFuzz().Run(input);
  return 0;
}

// The daemons of both ends of a rank's one-sided operations, played by a test: takes the commands
// from the rank's lane, carries them out in memory of its own, and says what came of them. Or the
// rank's own core and that of the other rank, which do the same by a direct link.
//
// One thread. A member that says so is safe beside the rank's threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "engine/engine_options.h"
#include "engine/session_view.h"
#include "shm/accumulate.h"
#include "shm/atomic.h"
#include "shm/atomic_operation.h"
#include "shm/lane.h"
#include "shm/layout/one_sided_layout.h"
#include "shm/wake.h"

namespace ferry::client {

class FakeOneSidedDaemon {
 public:
  static constexpr uint32_t kSegment = 3;  // the only one that a peer has
  static constexpr uint64_t kSegmentBytes = 2 << 20;

  struct Taken {
    shm::Descriptor descriptor;
    shm::OneSidedCommand words;
    std::vector<std::byte> data;
    uint64_t number = 0;  // with its peer; 0: a long one

    bool is_long() const {
      return shm::IsLong(static_cast<shm::OneSidedOperation>(words.operation));
    }
    // Of a long one: where its bytes lie in the rank's memory.
    std::byte* here() const {
      shm::Location location;
      std::memcpy(&location, data.data(), sizeof(location));
      return reinterpret_cast<std::byte*>(location.address);
    }
  };

  explicit FakeOneSidedDaemon(const engine::SessionView& view,
                              engine::Core core = engine::Core::kDaemon)
      : view_(view),
        lane_(core == engine::Core::kLink ? &view.layout->to_link : &view.layout->to_daemon),
        failures_(view.layout->failures[static_cast<uint32_t>(core)]) {}

  std::byte* MemoryOf(uint32_t peer) {
    std::vector<std::byte>& memory = memory_[peer];
    memory.resize(kSegmentBytes);
    return memory.data();
  }
  uint64_t& Word(uint32_t peer, uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(MemoryOf(peer) + offset);
  }

  // Takes what is in the lane, at most so many. Returns how many there were. With the rank's
  // threads.
  size_t Take(size_t limit = SIZE_MAX) {
    size_t count = 0;
    for (; count < limit; ++count) {
      const shm::Descriptor* const next = lane_.Peek();
      if (next == nullptr) {
        break;
      }
      Taken taken;
      taken.descriptor = *next;
      std::memcpy(&taken.words, next->payload, sizeof(taken.words));
      if ((next->flags & shm::kFlagCell) != 0) {
        taken.data.resize(taken.is_long() ? sizeof(shm::Location) : next->size_bytes);
        std::memcpy(taken.data.data(), lane_.Cell(next->cell), taken.data.size());
        lane_.ReleaseCell(next->cell);
      }
      lane_.Pop();
      taken.number = taken.is_long() ? 0 : NextNumber(taken.descriptor.destination);
      under_way.push_back(std::move(taken));
    }
    return count;
  }

  // Carries out the first operations under way, at most so many, and says so. With the rank's
  // threads.
  void CarryOut(size_t limit = SIZE_MAX) {
    for (; limit != 0 && !under_way.empty(); --limit) {
      const Taken taken = std::move(under_way.front());
      under_way.pop_front();
      uint64_t value = 0;
      std::vector<std::byte> found;
      const ErrorCode error = Apply(taken, &value, &found);
      End(taken, error, value, found);
    }
    shm::Wake(view_.inbox.wake()).Publish();
  }
  // Both.
  void Serve() {
    Take();
    CarryOut();
  }

  // The peer is gone, or cut off: what is under way with it ends so, and what comes later.
  void Lose(uint32_t peer, ErrorCode error) {
    view_.by_rank.StoreDead(peer, error);
    Take();
    for (const Taken& taken : under_way) {
      if (taken.descriptor.destination == peer) {
        End(taken, error, 0, {});
      }
    }
    std::erase_if(under_way,
                  [peer](const Taken& taken) { return taken.descriptor.destination == peer; });
    shm::Wake(view_.inbox.wake()).Publish();
  }
  void Mend(uint32_t peer) { view_.by_rank.StoreDead(peer, ErrorCode::kOk); }

  std::deque<Taken> under_way;

 private:
  // Goes on behind those that the other core has carried.
  uint64_t NextNumber(uint32_t peer) {
    const uint64_t done = shm::LoadAcquire(view_.by_rank.one_sided[peer].done);
    return begun_[peer] = std::max(begun_[peer], done) + 1;
  }
  ErrorCode Apply(const Taken& taken, uint64_t* value, std::vector<std::byte>* found) {
    const shm::OneSidedCommand& words = taken.words;
    const auto operation = static_cast<shm::OneSidedOperation>(words.operation);
    const uint64_t size_bytes = taken.descriptor.size_bytes;
    const bool is_atomic = shm::IsAtomic(operation);
    const uint64_t reach = is_atomic ? words.width : size_bytes;
    if (taken.descriptor.context != kSegment || words.offset > kSegmentBytes ||
        reach > kSegmentBytes - words.offset) {
      return ErrorCode::kInvalidBuffer;
    }
    std::byte* const place = MemoryOf(taken.descriptor.destination) + words.offset;
    if (is_atomic) {
      *value = shm::ApplyAtomicAt(place, words.width, operation, words.operand, words.compare);
      return ErrorCode::kOk;
    }
    const void* const own_data =
        taken.data.empty() ? static_cast<const void*>(&words.operand) : taken.data.data();
    if (operation == shm::OneSidedOperation::kAccumulate) {
      const auto what =
          shm::Accumulation::Unpack(static_cast<uint32_t>(taken.descriptor.tag)).value();
      found->resize(size_bytes);
      what.ApplyAlone(place, own_data, found->data(), size_bytes / what.element_bytes());
      return ErrorCode::kOk;
    }
    if (operation == shm::OneSidedOperation::kGet) {
      found->assign(place, place + size_bytes);
      return ErrorCode::kOk;
    }
    if (operation == shm::OneSidedOperation::kLongGet) {
      std::memcpy(taken.here(), place, size_bytes);
      return ErrorCode::kOk;
    }
    std::memcpy(place, taken.is_long() ? taken.here() : own_data, size_bytes);
    shm::UpdateSignal(Word(taken.descriptor.destination, words.signal != 0 ? words.compare : 0),
                      static_cast<shm::SignalUpdate>(words.signal), words.operand);
    return ErrorCode::kOk;
  }

  void End(const Taken& taken, ErrorCode error, uint64_t value,
           const std::vector<std::byte>& found) {
    if (taken.words.answer != shm::kNoAnswer) {
      shm::AnswerLayout& answer = view_.layout->answers[taken.words.answer];
      std::memcpy(view_.layout->answer_cells[taken.words.answer], found.data(), found.size());
      answer.value = value;
      answer.error = static_cast<uint32_t>(error);
      // Pairs with RemoteAnswers::OutcomeOf.
      shm::StoreRelease(answer.serial, taken.words.serial);
    }
    if (taken.is_long()) {
      return;
    }
    const uint32_t peer = taken.descriptor.destination;
    if (error != ErrorCode::kOk) {
      failures_.entries[failures_.count % shm::kFailures] = {taken.number, taken.number, peer,
                                                             static_cast<uint32_t>(error)};
      // Pairs with RemoteOperations::TakeFailures.
      shm::StoreRelease(failures_.count, failures_.count + 1);
    }
    // Pairs with RemoteAnswers::LastOver.
    shm::StoreRelease(view_.by_rank.one_sided[peer].done, taken.number);
  }

  const engine::SessionView view_;
  shm::LaneConsumer lane_;
  std::map<uint32_t, uint64_t> begun_;  // by peer
  shm::OneSidedFailures& failures_;
  std::map<uint32_t, std::vector<std::byte>> memory_;
};

}  // namespace ferry::client

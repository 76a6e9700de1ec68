// RemoteOperations: a command that it pushes, and the choice of the way that the command takes.
// Only its own files include this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/rma/remote_operations.h"
#include "engine/engine_options.h"
#include "shm/layout/descriptor.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::client {

struct RemoteOperations::Command {
  shm::Descriptor descriptor{};
  shm::OneSidedCommand words{};
  engine::Core core;             // the core that carries it out
  uint32_t cell = shm::kNoCell;  // as the engine names it

  Command(engine::Core its_core, uint32_t rank, const RemoteAddress& place,
          shm::OneSidedOperation operation, uint64_t size_bytes)
      : core(its_core) {
    descriptor.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
    descriptor.source = rank;
    descriptor.destination = place.rank;
    descriptor.context = RegionOf(place.segment);
    descriptor.size_bytes = size_bytes;
    words.operation = static_cast<uint8_t>(operation);
    words.answer = shm::kNoAnswer;
    words.offset = place.offset;
  }
  void SetCell(uint32_t taken) {
    cell = taken;
    descriptor.flags = shm::kFlagCell;
    descriptor.cell = static_cast<uint16_t>(taken);
  }
  void SetSignal(const Signal& signal) {
    words.signal = static_cast<uint8_t>(signal.update);
    words.operand = signal.value;
    words.compare = signal.offset;
    descriptor.tag = static_cast<int32_t>(signal.segment);
  }
  bool is_long() const { return shm::IsLong(static_cast<shm::OneSidedOperation>(words.operation)); }
  bool has_cell() const { return cell != shm::kNoCell; }
  bool has_answer() const { return words.answer != shm::kNoAnswer; }
};

// An operation with the rank of a place, from the choice of its way until all its commands are
// pushed.
class RemoteOperations::Passage {
 public:
  explicit Passage(RemoteOperations* operations) : operations_(*operations) {}
  ~Passage() {
    if (has_entered_) {
      const auto lock = operations_.Lock();
      operations_.ways_.Leave(rank_);
    }
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  // Waits until all operations that go another way are over. `by_daemon`: only ferryd can carry
  // this one out. kUnsupported: only a direct link could, and there is none.
  ErrorCode Enter(const RemoteAddress& place, bool by_daemon = false);
  engine::Core core() const { return core_; }

 private:
  RemoteOperations& operations_;
  bool has_entered_ = false;
  engine::Core core_ = engine::Core::kDaemon;
  uint32_t rank_ = 0;
};

inline const void* At(const void* base, uint64_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}

}  // namespace ferry::client

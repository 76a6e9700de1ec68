// The argument checks at the start of calls, which all backends share.
//
// Thread-safe; nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/status.h"
#include "gpu_backends/api/stream.h"
#include "gpu_backends/base/allocation_table.h"

namespace ferry::gpu {

class ArgumentChecks {
 public:
  // Returns true if devices reach memory that the table does not know.
  using Reaches = std::function<bool(const void*)>;

  // The table outlives this. Without `reaches`, devices reach the memory of the table only.
  explicit ArgumentChecks(const AllocationTable& table, Reaches reaches = nullptr)
      : table_(table), reaches_(std::move(reaches)) {}

  // Checks as Stream::CopyAsync documents, for `call`.
  Status Copy(const void* destination, const void* source, uint64_t size_bytes,
              const char* call) const;
  // As for Stream::CopyStrided; there must be bytes to copy.
  Status Strided(const StridedCopy& copy) const;
  // As for Stream::CopySpread; there must be bytes to copy.
  Status Spread(const SpreadCopy& copy) const;
  // As for Stream::Reduce.
  Status Reduce(const Reduction& reduction) const;
  // As for Stream::WriteValue64.
  Status Word(const uint64_t* word) const;
  Status LaunchMove(const MatchedMove& move) const { return Move(move, "LaunchMove"); }
  Status AwaitMove(const MatchedMove& move) const;

 private:
  // Checks that the range is in memory that devices reach.
  Status Reachable(const void* pointer, uint64_t size_bytes) const;
  // Checks an operand or a result.
  Status ReduceBuffer(const Reduction& reduction, const void* buffer) const;
  Status Move(const MatchedMove& move, const char* call) const;

  const AllocationTable& table_;
  const Reaches reaches_;
};

// Returns `event` as one of class Own. kInvalidArgument for null and for another backend's.
template <typename Own>
StatusOr<Own*> OwnEvent(Event* event, const char* call) {
  auto* own = dynamic_cast<Own*>(event);
  if (own == nullptr) {
    return Status(ErrorCode::kInvalidArgument,
                  std::string(call) + ": the event is " +
                      (event == nullptr ? "null" : "another backend's") +
                      "; make it with the CreateEvent of the stream's backend");
  }
  return own;
}

// All of the following return kInvalidArgument or ok.
Status CheckSize(uint64_t size_bytes, const char* call);
// As for GpuBackend::RegisterHostMemory.
Status CheckHostRange(const void* pointer, uint64_t size_bytes);
// As for GpuBackend::ImportIpc.
Status CheckIpcHandle(const IpcHandle& handle);
Status CheckHostFunction(const std::function<Status()>& function);

}  // namespace ferry::gpu

// Copies between a job's staging memory and memory of its ranks that the network cannot reach:
// their processes' private memory, or device memory.
//
// Calling thread: the progress thread, but for MemoryUser.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/error_code.h"
#include "engine/block_plan.h"
#include "internode/trace/trace_record.h"

namespace ferry::progress {

class StagingPool;

struct CopyTask {
  enum class Direction : uint32_t { kFromProcess = 0, kToProcess = 1 };
  Direction direction = Direction::kFromProcess;
  uint32_t lane = 0;            // local index of the rank,
  pid_t pid = 0;                // whose process this is
  uint64_t remote_address = 0;  // in that process, or in `region`
  uint32_t region = 0;          // of device memory that only streams reach; 0: private memory
  std::byte* device = nullptr;  // where in this process, if it has imported the region
  std::byte* local = nullptr;   // in the job's staging memory; kToProcess only reads it
  uint64_t size_bytes = 0;
  void* context = nullptr;            // the owner's
  ErrorCode result = ErrorCode::kOk;  // set when it is collected; see common/process_memory.h
  // The copy was given up, but may still be under way: its memory comes back by
  // StagingPool::Return.
  bool abandoned = false;

  // For the trace: who copied, and when. Set by the copier if `timed`, else left alone.
  bool timed = false;
  TracePlace place = TracePlace::kProgressThread;
  uint16_t worker = 0;
  uint64_t begun_ns = 0;
  uint64_t ended_ns = 0;
};

class CopySink {
 public:
  virtual void OnCopied(const CopyTask& task) = 0;

 protected:
  ~CopySink() = default;
};

// A user, beside the network, that wants to know staging memory before it is used: a GPU's driver,
// which copies at full speed only from and to memory that it has pinned.
//
// Calling thread: any, one at a time for one range. May take milliseconds.
class MemoryUser {
 public:
  virtual ~MemoryUser() = default;
  virtual void Admit(std::byte* base, uint64_t bytes) = 0;
  // The memory that was admitted there is about to go.
  virtual void Dismiss(std::byte* base) = 0;
};

class Copier {
 public:
  virtual ~Copier() = default;

  // Tasks in the memory of `pool` may come from now on, at most pool.pieces() at a time / will not
  // come any more.
  virtual void Open(StagingPool& pool) = 0;
  virtual void Close(StagingPool& pool) = 0;
  // False: more tasks than were announced by Open.
  virtual bool Submit(const CopyTask& task) = 0;
  // Tells `sink` of every finished task; it may submit. Returns how many.
  virtual uint32_t Collect(CopySink& sink) = 0;
  // Gives up the copies for a rank that is about to go; false: they must be waited for.
  virtual bool Abandon(uint32_t lane, CopySink& sink) = 0;
  // Submitted and not collected.
  virtual uint32_t pending() const = 0;
  // The user that must know the memory of pools before their blocks are used; null: nobody.
  virtual std::shared_ptr<MemoryUser> memory_user() const { return nullptr; }
};

// A way for a job's data between the network and memory that it cannot reach: whose copies, by
// which staging memory, in which blocks. The progress thread's.
//
// A job has one for its ranks' private memory and one for device memory that only streams reach.
struct Stage {
  std::shared_ptr<Copier> copier;  // null: there is nobody who could copy
  uint64_t block_bytes = 0;
  uint32_t blocks = 0;          // at most
  uint32_t least_blocks = 0;    // see StagingShape
  bool shrinks = true;          // blocks that nobody needs may leave the pool
  StagingPool* pool = nullptr;  // of the depot; null until it is needed
};

// How messages from and to device memory are cut.
struct PipelineRules {
  engine::BlockMode mode = engine::BlockMode::kAdvanced;
  uint64_t threshold_bytes = 64 << 10;
  uint32_t blocks_to_host = 2;
  uint32_t blocks_to_device = 2;

  engine::BlockPlan Plan(uint64_t message_bytes, uint32_t blocks) const {
    engine::BlockRules rules;
    rules.mode = mode;
    rules.block_count = blocks;
    rules.threshold_bytes = threshold_bytes;
    return {message_bytes, rules};
  }
};

}  // namespace ferry::progress

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
  ErrorCode result = ErrorCode::kOk;  // set when the task is collected; see common/process_memory.h
  // The copy was given up, but may still be under way: its memory comes back by
  // StagingPool::Return.
  bool abandoned = false;

  // For the trace: the thread that copied, and when. The copier sets these if `timed`.
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

// A user, beside the network, that has to prepare staging memory before it is used: a GPU's driver,
// which copies at full speed only from and to memory that it has pinned.
//
// Calling thread: any, one at a time for one range. May take milliseconds.
class MemoryUser {
 public:
  virtual ~MemoryUser() = default;
  virtual void Admit(std::byte* base, uint64_t bytes) = 0;
  // Tells the user that the memory admitted at `base` is about to go.
  virtual void Dismiss(std::byte* base) = 0;
};

class Copier {
 public:
  virtual ~Copier() = default;

  // From Open to Close tasks in the memory of `pool` may come, at most pool.fragments() at a time.
  virtual void Open(StagingPool& pool) = 0;
  virtual void Close(StagingPool& pool) = 0;
  // Queues a task. Returns false if there are more tasks than Open has announced.
  virtual bool Submit(const CopyTask& task) = 0;
  // Tells `sink`, which may submit more, of every finished task. Returns how many there were.
  virtual uint32_t Collect(CopySink& sink) = 0;
  // Gives up the copies for a rank that is about to go. Returns false if the caller must wait for
  // their end.
  virtual bool Abandon(uint32_t lane, CopySink& sink) = 0;
  // Returns the number of tasks that are submitted and not collected.
  virtual uint32_t pending() const = 0;
  // Returns the user that must admit the memory of pools before their blocks are used; null: there
  // is none.
  virtual std::shared_ptr<MemoryUser> memory_user() const { return nullptr; }
};

// A way for a job's data between the network and memory that it cannot reach: the copier, the
// staging memory and the shape of its blocks. Only the progress thread uses it.
//
// A job has one for its ranks' private memory and one for device memory that only streams reach.
struct Stage {
  std::shared_ptr<Copier> copier;  // null: nothing can copy
  uint64_t block_bytes = 0;
  uint32_t blocks = 0;          // at most
  uint32_t least_blocks = 0;    // see StagingShape
  bool shrinks = true;          // idle blocks may leave the pool
  StagingPool* pool = nullptr;  // of the depot; null until it is needed
};

// The rules by which messages from and to device memory are cut into blocks.
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

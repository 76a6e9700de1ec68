// Copies that their caller waits for, from and to memory that only streams reach: small messages,
// copies inside a node, and others that are not worth a pipeline.
//
// Streams are kept from one copy to the next, as many as there have been copies at the same time. A
// stream that has failed is not used again. Copies of up to 256 KiB to or from ordinary host memory
// go through pinned memory, which the link serves sooner; beyond, the CPU's copy takes as long as
// that saves.
//
// Calling thread: any. Copy blocks until the copy is done; no lock is held meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

class CopyStreams {
 public:
  // The backend outlives this.
  explicit CopyStreams(GpuBackend& backend) : backend_(backend) {}
  ~CopyStreams();
  CopyStreams(const CopyStreams&) = delete;
  CopyStreams& operator=(const CopyStreams&) = delete;

  // Copies between any two kinds of memory; `ends` says what the caller knows of them. CPUs copy
  // only where the backend has answered that neither end is device memory. Errors as of
  // Stream::CopyAsync and GpuBackend::CreateStream, or the error of the copy itself, or
  // PointerInfo::failure; kInvalidBuffer if the backend knows no memory where `ends` says that
  // there is device memory.
  Status Copy(void* destination, const void* source, uint64_t size_bytes,
              const DeviceEnds& ends = {});
  // Errors as of Stream::CopyStrided, except that the packed place may be any memory; kUnsupported
  // also for blocks so long that this does not pay.
  Status CopyStrided(const StridedCopy& copy);
  // Errors as of Stream::CopySpread, on the device of the first destination; kUnsupported also
  // where that is no device memory, or its device's kernels do not reach the memory of another one.
  Status CopySpread(const SpreadCopy& copy);
  // Errors as of Stream::Reduce, on the device whose memory the result is, or else an operand.
  Status Reduce(const Reduction& reduction);
  // Reduces on the device whose memory `own` is, wherever the operands and results lie. Errors as
  // of Stream::Reduce; kUnsupported also where `own` is no device memory, or its device's kernels
  // do not reach the memory of another one.
  Status ReduceNear(const void* own, Reduction reduction);
  // Returns true if the device has a working kernel for this reduction; the first call for a type
  // finds out.
  bool CanReduce(int device, ReductionType type, ReductionOp op);
  // Copies between device memory and private memory of another process, in pieces. `device`: the
  // memory's; -1: it is looked up. Errors also as of common/process_memory.h.
  Status Read(void* destination, pid_t pid, uint64_t address, uint64_t size_bytes, int device = -1);
  Status Write(pid_t pid, uint64_t address, const void* source, uint64_t size_bytes,
               int device = -1);

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    void* pinned = nullptr;  // kPinnedBytes; null: none was available
  };

  Status ReduceOn(int device, const Reduction& reduction);
  Status LetReach(int device, const void* pointer);
  Status CopyStridedByPinned(const Lane& lane, const StridedCopy& copy);
  StatusOr<PointerInfo> Look(const void* pointer) const;
  int DeviceFor(const PointerInfo& memory) const;
  StatusOr<PointerInfo> LookAtDevice(const void* pointer, int device) const;
  StatusOr<Lane> Take(int device);
  void Give(int device, Lane lane);
  // Takes a lane for the duration of `use(lane)`.
  template <typename Use>
  Status With(int device, Use&& use);

  GpuBackend& backend_;
  std::mutex mutex_;
  std::map<int, std::vector<Lane>> idle_;  // by device
  std::map<std::pair<int, ReductionType>, bool> reduces_;
};

}  // namespace ferry::gpu

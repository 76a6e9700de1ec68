// Memory of the program's own that a window exposes (MPI_Win_create), which other ranks cannot map,
// nor their daemons reach. Ranks of its node have the kernel copy it, elements of accumulates to
// and fro; those of other nodes reach it by their direct links to its owner (NodePeers::Expose).
// Where the kernel denies it, or there is no link, the owner's thread carries out what they ask for
// by messages in the context of the window's communicator. Of device memory that only streams
// reach others ask the owner for accumulates alone: it copies elements, changes them, and copies
// them back.
//
// A process that changes elements holds the lock of their owner's control block meanwhile: so all
// accumulates agree with each other, whichever way they come.
//
// Calling thread: CarryOut: any; blocks until it is done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "client/api/front_end.h"
#include "mpi/base/failure.h"

namespace ferry::mpi {

class Win;
struct Exposed;

// `length` bytes at `offset` from the beginning of the window.
struct PrivateRun {
  int64_t offset = 0;
  int64_t length = 0;
};

struct PrivateWish {
  enum class Kind : uint32_t { kPut, kGet, kAccumulate, kGetAccumulate, kCompareSwap };
  Kind kind = Kind::kPut;
  uint32_t what = 0;       // kAccumulate, kGetAccumulate: shm::Accumulation::packed()
  uint64_t bytes = 0;      // which the runs have in sum
  uint64_t run_count = 0;  // if it is 1, `run` is it
  PrivateRun run;
};

// Carries out `wish` in memory of a rank of the window; runs count from the beginning of that
// memory. `data`: the bytes of all runs; of accumulates whole elements, or null if they take no
// operands; of kCompareSwap the value to compare with, then the new one. `found`: kGet,
// kGetAccumulate, kCompareSwap: what was there, as many bytes. Gaps of pairs count as bytes of
// both, and are left alone in the memory.
Failure CarryOut(Win& win, int target, const Exposed& memory, PrivateWish wish,
                 std::span<PrivateRun> runs, const std::byte* data, std::byte* found);

// The thread of the memory's owner that carries out others' wishes, from construction to
// destruction. It looks for wishes often while some come, and less often the longer none has come:
// every millisecond at last.
class PrivateService {
 public:
  explicit PrivateService(Win& win);
  ~PrivateService();
  PrivateService(const PrivateService&) = delete;
  PrivateService& operator=(const PrivateService&) = delete;

 private:
  struct Asker {
    int rank = 0;  // in the window
    uint32_t in_job = 0;
    client::RequestHandle handle = 0;  // 0: it is gone
    PrivateWish wish;
  };

  void Work();
  bool ServeAll();
  ErrorCode Listen(Asker* asker);
  ErrorCode Serve(const Asker& asker);

  Win& win_;
  std::vector<Asker> askers_;
  std::mutex mutex_;
  std::condition_variable stops_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace ferry::mpi

// Memory of the program's own that a window exposes (MPI_Win_create): other ranks cannot map it,
// nor their daemons reach it. So its owner has a thread that carries out what they ask for, by
// messages in the contexts of the window's communicator. Ranks of its node whom the kernel lets
// copy its memory need not ask for puts and gets. Of device memory that only streams reach others
// ask the owner for accumulates alone: it copies elements, changes them, and copies them back.
//
// Accumulates of all come together in that thread, or, the owner's own, under the same mutex: so
// they agree with each other.
//
// Calling thread: AskOwner: any; blocks until the owner has answered.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "client/core/front_end.h"
#include "client/mpi/base/failure.h"

namespace ferry::mpi {

class Win;

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

// Carries it out in this process' own memory. `data`: the bytes of all runs; of accumulates whole
// elements, or null if they take no operands; of kCompareSwap the value to compare with, then the
// new one. `found`: kGet, kGetAccumulate, kCompareSwap: what was there, as many bytes. Gaps of
// pairs count as bytes of both, and are left alone in the memory. Failures: of copies by streams.
Failure CarryOut(Win& win, const PrivateWish& wish, std::span<const PrivateRun> runs,
                 const std::byte* data, std::byte* found);
// Has the owner, another rank of the window, do that.
Failure AskOwner(Win& win, int target, PrivateWish wish, std::span<const PrivateRun> runs,
                 const std::byte* data, std::byte* found);

// The owner's thread. Runs until it ends. It looks for wishes often while there are some, and less
// often the longer there are none: every millisecond at last.
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

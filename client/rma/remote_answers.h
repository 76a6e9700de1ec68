// The answers that a rank awaits from ranks of other nodes: the place of each in the session
// (shm/layout/one_sided_layout.h), and where its value goes.
//
// Operations whose value the program wants have an answer, and so have long ones, which have no
// number. A place is taken before its operation is pushed. Harvest copies the values that have come
// to where they belong, and frees their places.
//
// Calling thread: one at a time (RemoteOperations locks, where several may call); LastOver: any.
// Nothing blocks, but for copies out of device memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "client/memory/memory.h"
#include "client/p2p/progress.h"
#include "client/rma/one_sided_context.h"
#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::client {

class RemoteAnswers {
 public:
  // A call that waits for its answers.
  struct Call {
    uint32_t outstanding = 0;
    ErrorCode error = ErrorCode::kOk;
  };
  // The destination of an answer.
  struct Expected {
    OneSidedContext* context = nullptr;  // hears of an error, unless a call waits
    bool is_long = false;                // it has no number
    Call* call = nullptr;
    void* to = nullptr;  // of a get, unless the daemon brings the bytes there, or accumulate
    void* bounce_buffer = nullptr;  // of a long operation
    uint32_t size_bytes = 0;
    uint64_t* found = nullptr;  // of an atomic operation on one word
    uint32_t rank = 0;
    uint16_t serial = 0;
    uint64_t number = 0;
  };

  RemoteAnswers(Progress* progress, Memory* memory) : progress_(*progress), memory_(*memory) {}
  RemoteAnswers(const RemoteAnswers&) = delete;
  RemoteAnswers& operator=(const RemoteAnswers&) = delete;

  // Takes a place for an answer; false: none is free.
  bool TryTake(const Expected& expected, uint16_t* place);
  // Gives back the place of an operation that was not pushed.
  void GiveBack(uint16_t place);
  // Tells this answer from others in its place: the one that came there last, and one that may yet
  // come for an operation that was given up.
  uint16_t SerialOf(uint16_t place) const { return expected_[place].serial; }
  // To be called once the operation of the answer has got its number.
  void SetNumber(uint16_t place, uint64_t number) { expected_[place].number = number; }

  // Delivers all answers that have come.
  void Harvest();
  bool is_empty() const { return taken_ == 0; }
  // Returns true if is(expected) is true for an answer that was not harvested.
  template <typename Is>
  bool Any(Is&& is) const {
    for (uint64_t places = taken_; places != 0; places &= places - 1) {
      if (is(expected_[__builtin_ctzll(places)])) {
        return true;
      }
    }
    return false;
  }
  // Returns true if a long operation of the context is under way, so that its answer has not come.
  bool AwaitsLong(const OneSidedContext& context) const;
  // Has answers for which is(expected) is true go nowhere. They may still come, so their places
  // stay taken.
  template <typename Is>
  void Abandon(Is&& is) {
    for (uint64_t places = taken_; places != 0; places &= places - 1) {
      Expected& expected = expected_[__builtin_ctzll(places)];
      if (is(expected)) {
        expected.context = nullptr;
        expected.call = nullptr;
        expected.to = nullptr;
        expected.found = nullptr;
      }
    }
  }

  // Returns the number of the last operation with that rank that is over.
  uint64_t LastOver(uint32_t rank) const {
    // Pairs with OneSided::End: acquires the failures and answers up to there.
    return shm::LoadAcquire(progress_.view().by_rank.one_sided[rank].done);
  }

 private:
  const shm::SessionLayout& session() const { return *progress_.view().layout; }
  std::optional<ErrorCode> OutcomeOf(uint16_t place) const;
  void Collect(uint16_t place, ErrorCode error);

  Progress& progress_;
  Memory& memory_;
  uint64_t taken_ = 0;  // bit i: answer i is expected
  std::array<Expected, shm::kAnswers> expected_;
  std::array<uint16_t, shm::kAnswers> serials_{};  // used last
};

}  // namespace ferry::client

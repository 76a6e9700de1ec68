// Ranks in one thread whose messages arrive in any order, on which collectives are tested.
//
// Everything that a real network may do is drawn from a seed: when a rank starts, whether a send is
// over at once or only when its receiver has taken the data, when data are read and written, when
// there is no room. A buffer holds rubbish during a receive until the data comes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "coll/algorithms/algorithm.h"
#include "coll/messenger.h"
#include "coll/runner.h"
#include "tests/coll/collective_case.h"

namespace ferry::collective {

class SimulatedWorld {
 public:
  SimulatedWorld(int size, uint64_t seed);
  ~SimulatedWorld();

  Runner& runner(int rank) { return *runners_[rank]; }
  int size() const { return static_cast<int>(runners_.size()); }

  // Called before each send, receive and end of a message (in this order of a run's events) of
  // `rank`: it fails with the result, unless that is kOk. Also called with bytes 0 and peer -1 for
  // copies and for scratch memory.
  std::function<ErrorCode(int rank)> fault;
  bool may_stall = false;  // now and then there is no room

  // Makes every rank call `start` at its own time, and plays until `is_done`. False if nothing can
  // happen any more and a rank still waits.
  bool Play(const std::function<void(int rank)>& start,
            const std::function<bool(int rank)>& is_done,
            const std::function<void()>& look = nullptr);
  // The number of messages that were not received, and of receives without a message.
  size_t left_over() const;
  size_t scratch_blocks() const { return scratch_.size(); }
  // The devices for which scratch memory was requested, one after the other.
  const std::vector<int>& scratch_devices() const { return scratch_devices_; }

 private:
  class Endpoint;
  struct Message {
    int from = 0;
    int to = 0;
    const void* data = nullptr;   // for a send that is not over
    std::vector<char> copy = {};  // for a send that was over at once
    size_t size = 0;
    Messenger::Ticket send_ticket = 0;
    // Set once matched:
    void* into = nullptr;
    size_t capacity = 0;
    Messenger::Ticket receive_ticket = 0;
  };
  struct End {
    ErrorCode error = ErrorCode::kWouldBlock;
    size_t bytes = 0;
  };
  struct Posted {
    void* into;
    size_t capacity;
    Messenger::Ticket ticket;
  };
  using Key = std::tuple<int, int, uint32_t>;  // from, to, tag

  bool Chance(int one_in) { return random_() % static_cast<unsigned>(one_in) == 0; }
  ErrorCode Fault(int rank) { return fault ? fault(rank) : ErrorCode::kOk; }
  void Match(const Key& key);
  void DeliverOne();

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::map<Key, std::deque<Message>> unexpected_;
  std::map<Key, std::deque<Posted>> posted_;
  std::vector<Message> matched_;
  std::map<Messenger::Ticket, End> ends_;
  std::map<void*, std::unique_ptr<char[]>> scratch_;
  std::vector<int> scratch_devices_;
  Messenger::Ticket next_ticket_ = 1;
};

using Runs = std::vector<std::unique_ptr<CollectiveRun>>;  // of all ranks

// Prepares the case's collective on all ranks, which the algorithm must fit.
Runs PrepareRuns(SimulatedWorld* world, const Algorithm& algorithm,
                 const std::vector<CaseRank>& ranks);
// Starts the runs on the buffers of the case, and plays to their end.
bool PlayRuns(SimulatedWorld* world, const Runs& runs, std::vector<CaseRank>* ranks,
              Reducer* reducer, uint32_t sequence);

}  // namespace ferry::collective

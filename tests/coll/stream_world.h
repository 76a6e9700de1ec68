// Ranks whose schedules run on one stream each, in one thread: a stream does one thing after the
// other, and waits where it was told to.
//
// A seed decides what a real stream may do: which stream goes on next, when the bytes of a message
// move once both ends have started, and whether a send leaves ahead of its receive (into a cell,
// from which the receive's wait copies it).
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "coll/messenger.h"
#include "coll/schedule.h"
#include "coll/stream_order.h"
#include "tests/coll/collective_case.h"

namespace ferry::collective {

class StreamWorld {
 public:
  // Which messages the network chains: those between ranks of different nodes.
  using Nodes = std::vector<int>;  // by rank; empty: none
  // Unless `may_leave_ahead`, every send waits for its receive. The arguments outlive it.
  StreamWorld(const std::vector<Schedule>& schedules, std::vector<CaseRank>* ranks,
              Reducer* reducer, uint64_t seed, bool may_leave_ahead, const Nodes& chained = {});

  // Empty if all streams came to their ends, and no message is left over. Otherwise, what is wrong.
  std::string Play();

 private:
  using Key = std::tuple<int, int, uint32_t>;  // from, to, tag
  struct Message {
    const uint8_t* from = nullptr;  // once sent
    uint8_t* to = nullptr;          // once its receive has started
    size_t size = 0;
    bool is_sent = false;
    bool is_awaited = false;    // its receive has started
    bool leaves_ahead = false;  // the message goes through a cell
    std::vector<uint8_t> cell;
    std::vector<Key> follows;  // it moves only once these are there
    bool is_there = false;     // the message is in its place, or in the cell
    bool has_landed = false;   // and the receive's wait is over
  };
  struct Stream {
    std::vector<OrderedStep> steps;
    size_t next = 0;
    std::vector<uint8_t> scratch;
  };
  uint8_t* Address(size_t rank, const Range& range);
  static Key KeyOf(size_t rank, const Step& step);
  // Returns true if the stream moved on.
  bool Advance(size_t rank);
  bool Move(const Key& key, Message* message);
  void Start(size_t rank, const OrderedStep& ordered);
  void Compute(size_t rank, const Step& step);

  const std::vector<Schedule>& schedules_;
  std::vector<CaseRank>& ranks_;
  Reducer& reducer_;
  const bool may_leave_ahead_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::map<Key, Message> messages_;
  std::set<Key> there_;  // those that have moved
};

}  // namespace ferry::collective

// Ranks with direct links to each other, all in one test process.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "tests/client/direct/linked_rank.h"
#include "tests/support/eventually.h"

namespace ferry::client {

using tests::Eventually;

// A route of each to the other, with keys of its own. Ranks of other processes have theirs told.
LinkRoute RouteTo(const LinkAddress& address, uint64_t send_key, uint64_t receive_key);

// A message from one rank to another, with the request at either end.
struct Passage {
  uint32_t from = 0, to = 0;
  uint32_t send = 0, receive = 0;
};

class LinksTest : public testing::Test {
 protected:
  // Ranks 0 .. ranks - 1, each with an endpoint.
  void Start(uint32_t ranks, const RankOptions& options = {});
  // Opens the link between two of them, in that life of it; `one` calls.
  void Connect(uint32_t one, uint32_t other, uint64_t life = 1);
  // All that one sends to the other takes the link, when this returns.
  void Use(uint32_t from, uint32_t to);
  // All that one sends to the other goes by the daemons, when this returns.
  void Leave(uint32_t from, uint32_t to);
  // Start of two, with a link that both directions take.
  void StartLinked(const RankOptions& options = {});

  LinkedRank& rank(uint32_t rank) { return *ranks_[rank]; }
  void ProgressAll();
  // As Eventually, with all ranks progressing.
  bool Meanwhile(const std::function<bool()>& condition);
  // Progresses all until it is complete; returns its error.
  ErrorCode Wait(uint32_t rank, uint32_t request,
                 std::source_location where = std::source_location::current());
  // Waits for both ends, which end alike.
  void ExpectEnd(const Passage& passage, ErrorCode error = ErrorCode::kOk,
                 std::source_location where = std::source_location::current());
  // Sends a word and receives it; fails the test unless it arrives.
  void Carry(uint32_t from, uint32_t to,
             std::source_location where = std::source_location::current());
  // Neither end of the link has anything under way, and no rank is poisoned.
  void ExpectIdle(uint32_t one, uint32_t other,
                  std::source_location where = std::source_location::current());

  std::vector<UniqueFd> sockets_;  // of the ranks' daemons
  std::vector<std::unique_ptr<LinkedRank>> ranks_;
};

}  // namespace ferry::client

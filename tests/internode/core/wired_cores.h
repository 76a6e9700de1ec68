// Two cores, each of which serves one rank, with a wire between them. Nothing moves but by the
// test's turns: so it says when each of them does its part.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "internode/core/progress_core.h"
#include "shm/lane.h"
#include "tests/internode/core/progress_fixture.h"
#include "tests/internode/core/wire_end.h"

namespace ferry::daemon {

class WiredCoresTest : public PlaneTest, private progress::Home {
 protected:
  // `by_link`: by the seat of a rank's own core, with all messages on the path of the direct link.
  // Those of `engines` have one; the others are the test's.
  void Start(bool by_link, const std::vector<uint32_t>& engines);
  // Both are let go of, and nothing is left of them.
  void TearDown() override;

  void Turn();
  // Turns until nothing moves, with those who have engines inside their libraries if they are to
  // progress.
  void Settle(bool progresses = true);
  void CutWire();
  // The two find each other again, in that life of the link.
  void Mend(uint64_t life);
  uint32_t Receive(uint32_t rank, std::vector<std::byte>& buffer, int32_t tag = kTag);
  void ExpectReceived(uint32_t rank, uint32_t request, ErrorCode error = ErrorCode::kOk);

  static constexpr int32_t kTag = 5;
  static constexpr uint64_t kFirstLink = 100;       // to node 0
  static constexpr uint64_t kMostParked = 400'000;  // of a rank

  std::shared_ptr<Session> sessions_[2];
  WireEnd* ends_[2] = {};  // the cores'
  std::unique_ptr<progress::ProgressCore> cores_[2];
  std::vector<std::string> violations_;
  // By link: what the cores have told of ranks that are out of reach, in place of the ranks.
  std::vector<std::pair<uint32_t, ErrorCode>> ended_;
  // By link: those that the cores have lost. With `judges_`, before Start, they leave it to the
  // test what that means.
  bool judges_ = false;
  std::vector<uint64_t> lost_;
  bool reaches_ = true;  // private memory
  bool matches_ = true;  // ranks are to be had when a head comes
  uint64_t now_ns_ = 1'000'000;

 private:
  // progress::Home.
  std::byte* Reach(const progress::ServedRank& rank, uint64_t address, uint64_t bytes) override;
  void LetMatch(progress::ServedRank& served) override;
};

}  // namespace ferry::daemon

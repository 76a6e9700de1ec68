// A rank that has attached as libferry does, and all that it may get hold of then.
//
// One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "common/unique_fd.h"
#include "shm/segment.h"
#include "tests/daemon/test_rank.h"
#include "tests/hostile/dice.h"

namespace ferry::hostile {

class HostileSession {
 public:
  HostileSession(const std::string& job, uint32_t rank, uint32_t size, uint32_t local_size)
      : rank_(job, rank, size, local_size), number_(rank), size_(size), local_size_(local_size) {}

  // False, with the answer, if it was refused.
  bool Enter(const std::string& attach_socket, std::string* why_not);
  daemon::TestRank& attach() { return rank_; }
  shm::SessionLayout* session() {
    return reinterpret_cast<shm::SessionLayout*>(session_map_.base());
  }
  shm::TransferLayout* transfer(uint64_t index);
  // A part of its memory, more often one that is read much.
  std::pair<std::byte*, size_t> Area(Dice& dice);
  // Gives the daemon orders of every kind, of which some words are as they should be.
  void PushCommands(Dice& dice);
  // Asks for direct links, and answers the daemon's orders about them: right, wrong, twice, late,
  // or before there were any.
  void AbuseLinks(Dice& dice);
  // Offers rings of devices that are sound, or not, and asks for anything by them.
  void AbuseRings(Dice& dice);
  // Wakes the daemon, and any thread that works for the rank.
  void Ring();

  static constexpr uint64_t kHeapBytes = 1 << 20;  // region 1

 private:
  void ReadOrders();
  attach::LinkReply ReplyTo(const attach::LinkOrder& order, Dice& dice);

  daemon::TestRank rank_;
  const uint32_t number_;
  const uint32_t size_;
  const uint32_t local_size_;
  UniqueFd session_fd_;
  UniqueFd inbox_fd_;
  shm::Mapping session_map_;
  shm::Mapping inbox_map_;
  UniqueFd doorbell_;
  UniqueFd heap_fd_;
  shm::Mapping heap_;
  std::deque<attach::LinkOrder> orders_;  // the last ones
};

}  // namespace ferry::hostile

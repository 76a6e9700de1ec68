// A thread that turns the links of a rank while that computes, as libferry's own does.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "common/unique_fd.h"
#include "tests/client/direct/linked_rank.h"

namespace ferry::client {

class TurningThread {
 public:
  // `rank` has links, and outlives this. Disarmed at first.
  explicit TurningThread(LinkedRank& rank);
  ~TurningThread();
  TurningThread(const TurningThread&) = delete;
  TurningThread& operator=(const TurningThread&) = delete;

  // From now on it turns the links whenever something comes, until it finds the rank inside. Any
  // thread.
  void Arm();
  // How often it has slept, armed; how often it woke up then; the CPU time that it has taken so
  // far.
  uint64_t sleeps() const { return sleeps_.load(); }
  uint64_t wakes() const { return wakes_.load(); }
  uint64_t cpu_ns() const;

 private:
  void Run();
  bool Await(bool armed, uint64_t next_ns) const;

  LinkedRank& rank_;
  const UniqueFd told_;
  const UniqueFd armed_set_;  // epoll of told_ and the links
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> sleeps_ = 0;
  std::atomic<uint64_t> wakes_ = 0;
  std::thread thread_;
};

}  // namespace ferry::client

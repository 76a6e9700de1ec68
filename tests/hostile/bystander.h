// A second user, who has nothing to do with the hostile ones: a job of his over both nodes all the
// time, whose exchanges are checked and timed (steady.cc), and others that come and go, each byte
// of which is checked, too (tests/faults/ranks/mixed).
//
// Main thread. Everything that goes wrong fails the test.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/hostile/node.h"

namespace ferry::hostile {

// From when to when, of the monotonic clock.
struct Window {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// How long exchanges took, or jobs, in microseconds, from the shortest to the longest.
class Times {
 public:
  explicit Times(std::vector<uint64_t> times_us);
  size_t count() const { return times_us_.size(); }
  // Of so many in a hundred: none took longer. 0 if there are none.
  uint64_t Percentile(double percent) const;
  // "812 times: median 0.4 ms, 99 % 2.1 ms, longest 9.0 ms"
  std::string Text() const;

 private:
  std::vector<uint64_t> times_us_;
};

class Bystander {
 public:
  // Its first job begins; both nodes outlive it.
  Bystander(Node& here, Node& there);
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  // One of the other jobs, from its making to its end. Returns how long that took.
  uint64_t RunJob(const std::string& id);
  // Ends the steady job.
  void EndSteadyJob();
  // Then: the exchanges, short or long ones, that were due in these windows.
  Times Exchanges(bool are_long, const std::vector<Window>& windows) const;

 private:
  struct Job;
  struct Sample {
    uint64_t due_ns;
    uint64_t took_us;
  };

  std::unique_ptr<Job> Start(const std::string& id, const std::vector<std::string>& program);
  std::vector<std::string> AwaitEnd(Job& job);

  Node& here_;
  Node& there_;
  std::unique_ptr<Job> steady_;
  std::array<std::vector<Sample>, 2> samples_;  // short, long
};

}  // namespace ferry::hostile

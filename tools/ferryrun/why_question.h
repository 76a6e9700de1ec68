// Asks daemons what the ranks of a job wait for, as `ferryctl why` shows it: for the user, before
// ferryrun ends the job.
//
// ferryctl runs as a process of its own, so that a daemon that hangs holds nothing up. Main thread;
// nothing blocks.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace ferry::tools {

class WhyQuestion {
 public:
  // How long an answer may take.
  static constexpr uint64_t kLimitNs = 2'000'000'000;

  WhyQuestion() = default;
  WhyQuestion(const WhyQuestion&) = delete;
  WhyQuestion& operator=(const WhyQuestion&) = delete;
  ~WhyQuestion() { (void)Take(); }

  // Asks the daemons that serve these run directories, if there is a ferryctl beside this program.
  void Ask(const std::vector<std::string>& run_directories, const std::string& job_id);
  // Returns true while one of them has not answered.
  bool IsOpen() const;
  // Returns their answers so far, and asks no more.
  std::string Take();

  // Appends the events to poll for; OnReady takes as many back.
  void AppendInterests(std::vector<pollfd>* fds) const;
  void OnReady(const pollfd* fds);

 private:
  struct Answer {
    pid_t pid;
    UniqueFd out;  // until its end
    std::string text = {};
  };

  std::vector<Answer> answers_;
};

}  // namespace ferry::tools

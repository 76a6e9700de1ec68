// A job of two ranks on two nodes that sends messages endlessly, and the traces of its daemons.
//
// One test thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {

class TracedJob {
 public:
  // Starts tests/faults/ranks/pairs with `arguments` and the options `flags` of ferryrun, and waits
  // until messages pass.
  TracedJob(const std::vector<std::string>& flags, const std::vector<std::string>& arguments,
            std::vector<std::string> variables = {});
  ~TracedJob();
  TracedJob(const TracedJob&) = delete;
  TracedJob& operator=(const TracedJob&) = delete;

  // There are two, or messages do not pass. Rank 0 may be on either node: run directories have
  // random names.
  const std::vector<std::string>& run_directories() const { return nodes_; }
  // `ferryctl` asks the daemon of a node.
  CommandResult Ask(size_t node, std::vector<std::string> arguments) const;
  // Waits until rank 1 has received some 100 messages more; false if it does not.
  bool LetMessagesPass();
  // Makes the ranks end by themselves; fails the test if they, or their leftovers, are not right.
  void Finish();

 private:
  std::unique_ptr<Command> job_;
  std::vector<std::string> nodes_;
  bool finished_ = false;
};

}  // namespace ferry::e2e

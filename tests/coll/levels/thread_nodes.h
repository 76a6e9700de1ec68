// Ranks on several nodes that are threads of one process: a board for each node, and messages, with
// deaths at any point between the parts of a collective.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "coll/levels/two_levels.h"
#include "coll/messages/kept_runs.h"
#include "coll/messenger.h"
#include "coll/runner.h"
#include "tests/coll/board/thread_node.h"

namespace ferry::collective {

class ThreadNodes {
 public:
  // `has_board`: by node; those that are left out have one.
  explicit ThreadNodes(std::vector<int> node_of, std::map<int, bool> has_board = {});
  ~ThreadNodes();

  int size() const { return static_cast<int>(node_of_.size()); }
  const std::vector<int>& node_of() const { return node_of_; }
  bool Takes(int rank, const Problem& problem, const SelectionTable& table);
  // One collective: `part` is called for each rank in a thread of its own, but for those of
  // `without`. Blocks until all have returned, or died.
  void RunAll(const std::function<void(int rank)>& part, const std::vector<int>& without = {});
  // For RunAll: the rank's part in the collective.
  RunFailure Run(int rank, const Problem& problem, const Binding& binding);
  void Skip(int rank);
  void Renounce(int rank);

  // From now on that rank does nothing any more, if it has not begun.
  void Kill(int rank);
  // The rank dies when its next part by messages begins, or has ended.
  enum class Moment { kNever, kBeforeMessages, kAfterMessages };
  void KillAt(int rank, Moment moment) { moments_[static_cast<size_t>(rank)] = moment; }
  // How many messages were never received.
  size_t left_over() const;

 private:
  class Mail;
  struct Rank;
  struct Death {};  // thrown by a rank that dies

  // From, to, tag.
  using Key = std::tuple<int, int, uint32_t>;

  const std::vector<int> node_of_;
  std::mutex mutex_;  // guards what follows
  std::map<Key, std::deque<std::vector<char>>> messages_;
  std::unique_ptr<std::atomic<bool>[]> dead_;
  std::vector<Moment> moments_;
  std::map<int, std::unique_ptr<ThreadNode>> nodes_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  uint64_t number_ = 0;
};

}  // namespace ferry::collective

// Members of a board that are threads of one process: with deaths, memory that cannot be read, and
// memory that CPUs cannot load from.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "coll/board/board.h"
#include "coll/board/node_link.h"

namespace ferry::collective {

class ThreadNode {
 public:
  // `crowded`: members that wait soon sleep. `has_pauses`: NodeLink::HasPauses.
  ThreadNode(int members, bool crowded, bool has_pauses = false);
  ~ThreadNode();

  int members() const { return static_cast<int>(links_.size()); }
  // A member's view of the board, the same one at each call.
  Board& board(int member) { return *boards_[static_cast<size_t>(member)]; }
  // Runs `part` for each member, except those of `without`, in its thread. Blocks.
  void Run(const std::function<void(int member)>& part, const std::vector<int>& without = {});

  // From now on that member does nothing any more.
  void Kill(int member);
  // Reads and writes of that member's memory fail.
  void Protect(int member);
  // CPUs cannot load from this memory, and no other: only Copy, Read and Write reach it. Then: nor
  // from this, too. Before the members run.
  void SetByStream(const void* memory, size_t bytes);
  void AddByStream(const void* memory, size_t bytes);
  // That member reaches no such memory of others.
  void SetApart(int member);
  // No member's kernels reach such memory of others.
  void RefuseSpreads() { refuses_spreads_ = true; }
  // Reductions by a member's kernel end so, without having done anything.
  void EndReductions(ErrorCode error) { reductions_end_ = error; }
  // Each such reduction calls this before it touches memory.
  void BeforeReductions(std::function<void()> call) { before_reductions_ = std::move(call); }
  uint64_t copies() const { return copies_; }
  // How often a member's kernel has reduced the vectors of all, or was to do it.
  uint64_t reductions() const { return reductions_; }
  // How often a member has spread blocks of all, or was refused that.
  uint64_t spreads() const { return spreads_; }
  // How often a member has read or written such memory of others.
  uint64_t moves() const { return moves_; }
  // Blocks until the member sleeps, or has slept.
  void AwaitSleep(int member);
  // How often the member was woken.
  uint64_t Wakes(int member);

 private:
  class Link;
  struct Free {
    void operator()(std::byte* memory) const;
  };

  bool IsByStream(const void* pointer) const;
  // Runs a member's parts on its thread, until the node ends.
  void RunParts(int member);

  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Board>> boards_;
  std::unique_ptr<std::atomic<bool>[]> dead_;
  std::unique_ptr<std::atomic<bool>[]> protected_;
  std::unique_ptr<std::atomic<bool>[]> apart_;
  std::vector<std::pair<uintptr_t, size_t>> by_stream_;
  std::atomic<uint64_t> copies_{0};
  std::atomic<uint64_t> moves_{0};
  std::atomic<uint64_t> spreads_{0};
  std::atomic<uint64_t> reductions_{0};
  bool refuses_spreads_ = false;
  ErrorCode reductions_end_ = ErrorCode::kOk;
  std::function<void()> before_reductions_;

  // Threads last as long as the node: under a sanitizer it takes longer to start one than to run
  // a collective.
  std::mutex parts_mutex_;
  std::condition_variable parts_change_;
  std::vector<const std::function<void(int)>*> parts_;  // by member; null: nothing to do
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ferry::collective

// The members of a communicator that all live on this node, by libferry.
//
// Calling thread: see board/node_link.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "client/mpi/board/board.h"
#include "client/mpi/board/node_link.h"
#include "client/mpi/channel/call_watch.h"

namespace ferry::mpi {

class FrontNode : public NodeLink {
 public:
  // `world_ranks`: the members' ranks in the job.
  explicit FrontNode(std::vector<int> world_ranks) : world_ranks_(std::move(world_ranks)) {}

  // From now on `watch`, which outlives it, tells of long waits on this board. Null: nobody does.
  void SetWatch(CallWatch* watch, const Board* board) {
    watch_ = watch;
    board_ = board;
  }

  void WaitFor(bool (*done)(void*), void* argument) override;
  void Wake(int member) override;
  ErrorCode StateOf(int member) override;
  NodeAddress Locate(const void* pointer, size_t size_bytes) override;
  ErrorCode Read(int member, const NodeAddress& from, void* to, size_t size_bytes) override;
  ErrorCode Write(int member, const NodeAddress& to, const void* from, size_t size_bytes) override;
  bool IsByStream(const void* pointer) override;
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override;
  void* TakeStaging(size_t size_bytes) override;
  void GiveStaging(void* memory) override;

 private:
  uint32_t RankOf(int member) const {
    return static_cast<uint32_t>(world_ranks_[static_cast<size_t>(member)]);
  }

  const std::vector<int> world_ranks_;
  CallWatch* watch_ = nullptr;
  const Board* board_ = nullptr;
};

}  // namespace ferry::mpi

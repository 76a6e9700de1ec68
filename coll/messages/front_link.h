// The link of a board by libferry: how its members wait for each other and reach each other's
// memory. Communicators and the teams of OpenSHMEM derive their links from it.
//
// Calling thread: one at a time for each member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/api/front_end.h"
#include "coll/board/node_link.h"
#include "common/error_code.h"
#include "common/status.h"

namespace ferry::collective {

class FrontLink : public NodeLink {
 public:
  // `front_end` is where the process keeps its connection. `world_ranks`: of the job, by member.
  FrontLink(client::FrontEnd* const& front_end, std::vector<int> world_ranks)
      : front_end_(front_end), world_ranks_(std::move(world_ranks)) {}

  // The member's rank in the job.
  int WorldRank(int member) const { return world_ranks_[static_cast<size_t>(member)]; }

  void WaitFor(bool (*done)(void*), void* argument) override;
  void NoteAwaited(int member) override;
  void Wake(int member) override;
  ErrorCode StateOf(int member) override;
  NodeAddress Locate(const void* pointer, size_t size_bytes) override;
  ErrorCode Read(int member, const NodeAddress& from, void* to, size_t size_bytes) override;
  ErrorCode Write(int member, const NodeAddress& to, const void* from, size_t size_bytes) override;
  bool IsByStream(const void* pointer) override;
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override;
  // The error of the last Copy that failed.
  const Status& copy_failure() const { return copy_failure_; }

 protected:
  uint32_t RankOf(int member) const { return static_cast<uint32_t>(WorldRank(member)); }
  static shm::Location LocationOf(const NodeAddress& address) {
    return {address.region, address.flags, address.address};
  }

 private:
  client::FrontEnd* const& front_end_;
  const std::vector<int> world_ranks_;
  Status copy_failure_;
};

}  // namespace ferry::collective

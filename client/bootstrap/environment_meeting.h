// The ranks of a job whose launcher has no server, but tells each rank where to meet
// (meeting_place.h): rank 0 serves the meeting (meeting_server.h), and the others call it. Rank 0
// itself, and not its node's daemon: it is the process at whose host and port the launcher has
// others call; the job's secret stays with its ranks; and a job of several users' daemons needs
// nothing of them.
//
// Calling thread: one at a time; Missing: any. Meet and Fence block for the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/bootstrap/exchange.h"
#include "client/bootstrap/meeting_place.h"
#include "client/bootstrap/meeting_server.h"
#include "client/bootstrap/meeting_stream.h"
#include "client/bootstrap/meeting_words.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

class EnvironmentMeeting : public Exchange {
 public:
  // Rank 0 listens from now on. kAlreadyExists: another process listens there. kConfiguration: a
  // rank of this meeting has started this process, which only has its variables. `answer_ms`: for
  // how long rank 0 may leave a caller without an answer, and a caller may be a stranger to rank 0.
  static StatusOr<std::unique_ptr<EnvironmentMeeting>> Open(const MeetingPlace& place,
                                                            uint64_t answer_ms);

  uint32_t rank() const override { return place_.rank; }
  uint32_t size() const override { return place_.size; }
  // Before Meet this rank, behind a lower one if another one tells the user of the waiting.
  const std::vector<uint32_t>& local_ranks() const override { return local_ranks_; }

  // Waits for rank 0 to listen, and for all ranks; finds those of this node. kNodeUnreachable:
  // there is no such host. kPermissionDenied: rank 0 has another secret. kTimeout, kCorrupt:
  // something else listens there. kPeerDied: a rank has ended. kConfiguration: the ranks' numbers
  // do not fit each other.
  Status Meet() override;
  Status Put(const std::string& name, const std::string& words) override;
  Status Fence() override;
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) override;
  std::string Missing() const override;

 private:
  EnvironmentMeeting(const MeetingPlace& place, uint64_t answer_ms);
  Status CallRankZero();
  StatusOr<UniqueFd> Connect();
  StatusOr<bool> Introduce(UniqueFd connection);
  StatusOr<std::string> Hear(std::optional<uint64_t> until_ns);
  void SetTrouble(const std::string& words);
  std::string Where() const;
  Status Cannot(const Status& why) const;

  const MeetingPlace place_;
  const uint64_t answer_ms_;
  UniqueFd mark_;  // tells processes that this one starts that they are no ranks
  std::vector<uint32_t> local_ranks_;
  std::unique_ptr<MeetingServer> server_;  // rank 0's
  std::optional<MeetingStream> rank_zero_;
  MeetingPuts puts_;  // since the last fence
  MeetingTable table_;
  mutable std::mutex mutex_;
  std::string trouble_;  // why rank 0 has not been reached
};

}  // namespace ferry::client

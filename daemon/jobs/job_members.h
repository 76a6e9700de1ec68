// How ranks become members of their job, meet the others and leave: the calls that are answered
// later (long polls).
//
// Thread: the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "daemon/jobs/jobs.h"
#include "daemon/session/session.h"

namespace ferry::daemon {

class JobMembers {
 public:
  // Both must outlive it.
  JobMembers(boost::asio::io_context& context, Jobs& jobs) : context_(context), jobs_(jobs) {}

  // ---- Calls of ranks ----
  // Calls `done` once: now, when the job is complete, when it cannot become so, or after `wait_ms`
  // (0: never) with a reply that says `waiting`. There is no limit to how long the ranks of a job
  // wait for one another, while they and their daemons live. kPeerDied, kNodeUnreachable (a daemon
  // has not been up for peer_timeout_ms), kAborted, kVersionMismatch.
  void Join(const Session& session, uint64_t wait_ms, JoinDone done);
  // Where `first` and the ranks behind it live, at most `most`. kNotInitialized, kInvalidRank.
  struct Places {
    uint32_t node = 0;  // our own
    uint32_t node_count = 0;
    uint32_t job_size = 0;
    std::vector<attach::PeerPlace> peers;
  };
  StatusOr<Places> PlacesOf(const Session& session, uint32_t first, uint32_t most) const;
  // Calls `done` once, now or later: when nothing here touches the rank's memory any more, or, with
  // false, after `wait_ms` (0: never). A rank that has been told false asks again.
  void Detach(const Session& session, uint64_t wait_ms, DetachDone done);

  // ---- News ----
  // Goes on with the rank's join: it is known now whether its private memory is reachable
  // (Session::reach_settled).
  void OnReach(const std::string& job_id, uint32_t rank);
  // Lets a rank that asks to join become a member, if it is known who reaches its memory.
  void CheckJoined(JobRecord& job, uint32_t index);
  // Answers all that wait to join, if all ranks of all nodes have joined.
  void CheckComplete(JobRecord& job);
  // Answers the rank's join, if one waits.
  static void Finish(JobRecord& job, uint32_t rank, const Status& status);
  // Answers all joins that wait.
  static void FailAll(JobRecord& job, const Status& why);

 private:
  void EndPollLater(JobRecord& job, uint32_t rank, uint64_t wait_ms);
  static void EndPoll(JobRecord& job, uint32_t rank);

  boost::asio::io_context& context_;
  Jobs& jobs_;
};

}  // namespace ferry::daemon

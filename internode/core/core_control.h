// Carries out the calls of the control plane on a core: adds and removes jobs, sessions, regions
// and nodes, and makes reports.
//
// Part of ProgressCore. The calls that daemon/plane/data_plane.h has too are documented there.
// Calling thread: the progress thread, unless noted. Nothing blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "internode/core/arrivals.h"
#include "internode/core/core_ends.h"
#include "internode/core/core_state.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/job_plan.h"
#include "internode/delivery/reports.h"
#include "internode/registration/registrations.h"
#include "internode/session/served_segments.h"
#include "internode/staging/copier.h"
#include "internode/trace/tracer.h"
#include "shm/daemon_trace.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class CoreControl {
 public:
  // The arguments outlive it. `copied` takes the copies that a worker process gives up.
  CoreControl(CoreState& state, CoreEnds& ends, Arrivals& arrivals, CopySink& copied)
      : state_(state), ends_(ends), arrivals_(arrivals), copied_(copied) {}
  CoreControl(const CoreControl&) = delete;
  CoreControl& operator=(const CoreControl&) = delete;

  // ---- Jobs, sessions, regions, nodes
  Status AddJob(const JobPlan& plan);
  void RemoveJob(const std::string& job_id);
  Status CheckSession(const ServedSegments& session) {
    return state_.directory.CheckSession(session);
  }
  // Starts serving a rank. To be called after CheckSession.
  void AddSession(std::shared_ptr<const ServedSegments> session, const Seat& seat,
                  RankCare care = {});
  // Adds a region of a served rank. Its `number` is not 0 and not in use yet. The core sets its
  // identity, except for the allocation, and its name.
  Status AddRegion(const std::string& job_id, uint32_t rank, ClaimableRegion memory);
  // Returns null for a rank that is not served here.
  ServedRank* FindServed(const std::string& job_id, uint32_t rank) {
    return state_.directory.FindServed(job_id, rank);
  }
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route);
  // Do what the calls of transport::Transport do, for the link of that number (NodeRoute::link).
  void Connect(uint64_t number, uint64_t now_ns);
  ErrorCode ConnectionTo(uint64_t number, std::string* why);

  // Removals take several turns: each call returns true once the removal is done (or there is
  // nothing of that name). Until the deadline a session's last commands are sent (then, or after
  // that, *says_no_more is set); afterwards memory that the NIC does not release is kept for it.
  bool TryRemoveSession(const std::string& job_id, uint32_t rank, uint64_t deadline_ns,
                        bool* says_no_more);
  // The core drops `unpinned`, soon after the removal, when the memory may be used for something
  // else.
  bool TryRemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                       uint64_t deadline_ns, const std::shared_ptr<UnpinSignal>& unpinned);

  // ---- Reports
  std::vector<NicStatistics> Nics() const;
  // Any thread.
  RegistrationStatistics Registered() const { return state_.registrations.Statistics(); }
  Status StartTrace(TraceRing ring);
  StatusOr<TraceDump> StopTrace();
  void TraceJob(const std::string& job_id, std::shared_ptr<shm::DaemonTraceWriter> events);
  RankReport Inspect(const std::string& job_id, uint32_t rank);
  // By node of the job; empty for an unknown job.
  std::vector<NodeTraffic> Traffic(const std::string& job_id) const;
  bool Idle() const;
  // Returns true if no operation is open between the ranks here and that rank of another node, and
  // nothing waits to be sent to it.
  bool IsIdleWith(const std::string& job_id, uint32_t peer);
  // Returns true if one-sided operations of the ranks here with that one are under way.
  bool WantsOf(const std::string& job_id, uint32_t peer);
  // Returns true if data of a put of that rank comes into some of this memory, which the home of
  // this core knows.
  bool FetchesPutInto(const std::string& job_id, uint32_t peer, MemoryRange memory);
  // Returns true if the registrar has memory to pin, or results to report.
  bool is_pinning() const { return state_.registrar.pending() != 0; }

 private:
  static NicStatistics CountsOf(const transport::Transport& rail);
  bool Retire(ServedRank& rank, ServedRegion& region, uint64_t deadline_ns,
              const std::shared_ptr<UnpinSignal>& unpinned);

  CoreState& state_;
  CoreEnds& ends_;
  Arrivals& arrivals_;
  CopySink& copied_;
  uint64_t regions_added_ = 0;
};

}  // namespace ferry::progress

// The data plane, as the control plane sees it. One implementation:
// daemon/progress/progress_plane.h; tests of the control plane use a fake.
//
// Calling thread: any control thread. Calls reach the progress thread through its mailbox and
// return when it has carried them out (microseconds to milliseconds), so a caller may free what it
// took back. Three calls differ, because they may have to wait for the network: RemoveSession, and
// RemoveRegion and ReachWindows, which unpin and pin memory, say later that they are done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/error_code.h"
#include "common/status.h"
#include "daemon/faults/faults.h"
#include "daemon/plane/turn_times.h"
#include "daemon/session/session.h"
#include "internode/delivery/core_hooks.h"
#include "internode/delivery/job_plan.h"
#include "internode/delivery/reports.h"
#include "internode/registration/registration_statistics.h"
#include "internode/trace/tracer.h"
#include "shm/daemon_trace.h"
#include "shm/layout/pair_layout.h"

namespace ferry::daemon {

// Types of the core (internode/) that the control plane uses, too.
using progress::JobPlan;
using progress::NicStatistics;
using progress::NodeRoute;
using progress::NodeTraffic;
using progress::RankReport;
using progress::RegistrationStatistics;
using progress::TraceDump;
using progress::TransferReport;

// Bytes of a region; without a region there are none.
struct RegionPlace {
  std::shared_ptr<const Region> region;
  uint64_t offset = 0;

  std::byte* address() const { return region->mapping.base() + offset; }
};

struct PairName {
  std::string job_id;
  uint32_t rank = 0;    // the owner of this end
  uint64_t number = 0;  // this daemon's number for it, unique for as long as the daemon lives
};

// One end of a matched pair of persistent requests whose other end is on another node: the data
// that the control plane, which has matched the two and checked everything, gives the data plane.
struct PairPlan {
  PairName name;
  uint32_t peer = 0;
  bool is_send = false;
  shm::SendMode mode = shm::SendMode::kStandard;
  uint64_t size_bytes = 0;   // of each message
  uint64_t peer_number = 0;  // the other daemon's number for it
  RegionPlace end;           // the end's PairLayout
  RegionPlace window;        // the memory
  // For a receive whose messages may come before their start: the cells in which they wait, one in
  // each, in turn. 0: none; messages go into the window, once it is clear to send. If the window is
  // device memory there is one cell, for messages of up to its size, which packets bring.
  RegionPlace cells;
  uint32_t cell_count = 0;
  uint64_t cell_bytes = 0;

  bool is_by_stream() const { return window.region != nullptr && window.region->by_stream; }
  shm::PairLayout* layout() const { return reinterpret_cast<shm::PairLayout*>(end.address()); }
};

// Device memory of a rank that is to be the window of a matched pair between nodes.
struct NicWindow {
  uint32_t region = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// The CPUs on which a rank runs, and the NIC that it uses.
struct PlaceReport {
  std::string cpus;
  std::string nic;
  int32_t nic_distance = -1;  // as topology::Distance; -1: unknown
};

class DataPlane {
 public:
  virtual ~DataPlane() = default;

  // Returns the fabric address that another daemon needs to reach this one, and that no third party
  // may know: `guest` is the NodeRoute::guest of the other one (transport::Transport::AddressFor).
  virtual std::vector<std::byte> FabricAddressFor(uint64_t guest) const = 0;
  // Returns the statistics of each NIC. Those that all NICs share (staging, operations) stand with
  // the first, which carries the messages.
  virtual std::vector<NicStatistics> Nics() const = 0;
  NicStatistics Nic() const { return Nics().front(); }
  // Returns the statistics of registrations. Does not wait for the progress thread.
  virtual RegistrationStatistics Registered() const = 0;
  // Returns how long turns of its thread have taken. Does not wait for it.
  virtual TurnTimes TurnDurations() const { return {}; }
  // Begins to record a trace, in memory of a fixed size. kAlreadyExists: one is being recorded.
  virtual Status StartTrace() = 0;
  // Ends the recording, and returns the trace. kNotFound: none is being recorded.
  virtual StatusOr<TraceDump> StopTrace() = 0;
  // Records what is done for that job, and for no other, into `events` until the job is removed.
  // Unknown jobs are ignored.
  virtual void TraceJob(const std::string& /*job_id*/,
                        std::shared_ptr<shm::DaemonTraceWriter> /*events*/) {}
  // Returns the configured faults; with `release`, lets operations that a fault has stopped go on.
  virtual std::vector<FaultReport> Faults(bool release) = 0;
  // Returns a report on a rank; empty for a rank that is not served.
  virtual RankReport Inspect(const std::string& job_id, uint32_t rank) const = 0;
  // Returns what a job's ranks here and those of each other node have sent each other, by node;
  // empty for an unknown job.
  virtual std::vector<NodeTraffic> Traffic(const std::string& /*job_id*/) const { return {}; }
  virtual PlaceReport PlaceOf(const Session& session) const = 0;

  virtual Status AddJob(const JobPlan& plan) = 0;
  // Removes a job, all of whose sessions must have been released.
  virtual void RemoveJob(const std::string& job_id) = 0;

  // Starts serving a rank.
  virtual Status AddSession(std::shared_ptr<Session> session) = 0;
  // The steps of a removal. Each function is called once, in this order, by any thread, perhaps
  // before RemoveSession has returned.
  struct Departure {
    // The rank's last messages have gone out, or will not: after a second at most.
    std::function<void()> said_last;
    // The rank's pending operations are gone, for which a NIC, or a peer that stands still, may
    // take until they time out.
    std::function<void()> let_go;
  };
  // Stops serving a rank; returns at once.
  virtual void RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) = 0;
  // Releases a session, after let_go: on return no thread of the data plane touches the rank's
  // segments, regions or process any more. Its regions stay mapped, and count against its user's
  // quota, until the NIC has let go of them.
  virtual void ReleaseSession(const std::string& job_id, uint32_t rank) = 0;

  // Has device memory that only streams reach (Region::by_stream) imported by the process that
  // works for the job, to copy between it and the network. kOk: done (Region::device_memory, which
  // must not outlive this object); kWouldBlock: the job's worker process was asked, and
  // PlaneHooks::on_import follows unless that process ends. Any other code: the rank itself is to
  // copy, because the options say so (kConfiguration), or for the reason why the memory cannot be
  // imported. Any thread.
  virtual Status ImportRegion(const Session& /*session*/,
                              const std::shared_ptr<Region>& /*region*/) {
    return {ErrorCode::kUnsupported, "no streams here"};
  }

  // Gives back devices that no imported memory has needed for gpu_idle_release_ms. False once they
  // are given back. The control thread calls it now and then. May block while a driver ends.
  virtual bool ReleaseGpus() { return false; }

  // Lets transfers use the region from now on; they register the parts that they need with the NIC.
  virtual Status AddRegion(const std::string& job_id, uint32_t rank,
                           std::shared_ptr<const Region> region) = 0;
  // Removes a region; returns at once. Calls `done` once, by any thread, perhaps before this has
  // returned: when nothing uses the region any more, and the NIC has unpinned it.
  virtual void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                            std::function<void()> done) = 0;
  // Removes a region and waits, for a caller that may block.
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) {
    std::promise<void> removed;
    RemoveRegion(job_id, rank, region, [&removed] { removed.set_value(); });
    removed.get_future().wait();
  }

  // Registers device memory of a rank with the NIC, before any operation depends on it; returns at
  // once. Calls `done` once, by any thread, perhaps before this has returned, unless the plane ends
  // before. kOk: the NIC has all of the memory; kUnsupported: some of it has to be staged, for the
  // reason in the text. It takes seconds at most.
  virtual void ReachWindows(const std::string& /*job_id*/, uint32_t /*rank*/,
                            std::vector<NicWindow> /*windows*/,
                            std::function<void(const Status&)> done) {
    done({ErrorCode::kUnsupported, "no network card here reaches device memory"});
  }

  // Serves one end of a matched pair whose other end is on another node. kNotFound: its rank is not
  // served any more. kUnsupported: its window is device memory that the NIC does not reach.
  virtual Status AddPair(const PairPlan& plan) = 0;
  // Ends a pair whose other end is gone: after its first `rounds` messages all fail with `error`.
  // Unknown pairs are ignored.
  virtual void EndPair(const PairName& name, uint64_t rounds, ErrorCode error) = 0;
  // Removes a pair that its own rank has taken back: on return nothing touches its memory any more,
  // except a NIC that still holds a message that has failed.
  virtual void RemovePair(const PairName& name) = 0;

  // Routes packets of the job to node `node` of it. After a cut (NodeFailed with kLinkDown) with
  // another life of the link: kWouldBlock while ranks here have not noticed the cut yet (try
  // again); then packets are taken from the node, and NodeReturned, or a first packet from there,
  // lets the ranks send.
  virtual Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) = 0;

  // Lets ranks send to a node again, which takes packets of the job again.
  virtual void NodeReturned(const std::string& job_id, uint32_t node) = 0;

  // Tells the sessions of the job here that a rank, anywhere in the job, is gone: their pending
  // operations with it fail with `error`, sleepers wake. kNotFound: it has left in good order,
  // which counts after all its messages; for a rank of this node the other nodes are told.
  virtual void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) = 0;
  // As RankEnded for each, in one turn.
  struct RankEnd {
    uint32_t rank = 0;
    ErrorCode error = ErrorCode::kOk;
  };
  virtual void RanksEnded(const std::string& job_id, std::span<const RankEnd> ends) {
    for (const auto& [rank, error] : ends) {
      RankEnded(job_id, rank, error);
    }
  }
  // Fails a peer daemon (NodeRoute::link) that is gone: all its ranks are gone with
  // kNodeUnreachable, and operations on the wire fail now. With kLinkDown it is cut off, and may
  // return.
  virtual void NodeFailed(uint64_t link, ErrorCode error) = 0;
  // Parts a rank here from one elsewhere, after the two have lost their direct link, and with it
  // perhaps messages. The first one's operations with the other fail with kLinkDown, and so do
  // those that it begins, as after a cut of the two nodes. The other node does the same. Unknown
  // ranks are ignored.
  virtual void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) = 0;
  // Returns true once the rank has acknowledged the parting, and this node sends no older messages
  // of the two any more. To be called until then.
  virtual bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) = 0;
  // Returns true once messages pass between the two again: they do when AreParted is true on both
  // nodes.
  virtual bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) = 0;
  // Poisons every session of an aborted job here with `error`.
  virtual void PoisonJob(const std::string& job_id, ErrorCode error) = 0;

  // Makes the data plane's own thread call `answer`, soon if it turns. Returns at once.
  virtual void Probe(std::function<void()> answer) = 0;

  // Returns the descriptor from which ranks map the pages of that NIC's counters
  // (shm::CounterPageWords), valid as long as this object; -1: ranks get none. Any thread.
  virtual int CounterPages(uint32_t /*nic*/) const { return -1; }

  // Returns true when nothing is queued, on the wire or being copied (for draining).
  virtual bool Idle() const = 0;
};

// The news that the data plane tells the control plane by itself.
//
// The progress thread calls these functions, seldom: they must not block nor call the data plane
// back (post to a loop instead). Any may be empty.
struct PlaneHooks : progress::CoreHooks {
  // The rank's Session::reach_settled became true (another thread than the others).
  std::function<void(const std::string& job_id, uint32_t rank)> on_reach;
  // A DataPlane::ImportRegion that returned kWouldBlock has ended (the same thread as on_reach).
  std::function<void(const std::string& job_id, uint32_t rank, uint32_t region,
                     const Status& status)>
      on_import;
};

}  // namespace ferry::daemon

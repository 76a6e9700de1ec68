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
#include "daemon/session/session.h"
#include "internode/delivery/core_hooks.h"
#include "internode/delivery/job_plan.h"
#include "internode/delivery/reports.h"
#include "internode/registration/registration_statistics.h"
#include "internode/trace/tracer.h"
#include "shm/layout/pair_layout.h"

namespace ferry::daemon {

// Words of the core (internode/) that the control plane says, too.
using progress::JobPlan;
using progress::NicStatistics;
using progress::NodeRoute;
using progress::RankReport;
using progress::RegistrationStatistics;
using progress::TraceDump;
using progress::TransferReport;

// Bytes of a region. Empty without one.
struct RegionPlace {
  std::shared_ptr<const Region> region;
  uint64_t offset = 0;

  std::byte* address() const { return region->mapping.base() + offset; }
};

struct PairName {
  std::string job_id;
  uint32_t rank = 0;    // whose end it is
  uint64_t number = 0;  // this daemon's number for it, unique for as long as the daemon lives
};

// One end of a matched pair of persistent requests whose other end is on another node: what the
// control plane, which has matched them and checked all of it, tells the data plane.
struct PairPlan {
  PairName name;
  uint32_t peer = 0;
  bool is_send = false;
  shm::SendMode mode = shm::SendMode::kStandard;
  uint64_t size_bytes = 0;   // of each message
  uint64_t peer_number = 0;  // the other daemon's number for it
  RegionPlace end;           // its PairLayout
  RegionPlace window;        // its memory
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

// Where a rank runs, and which NIC it uses.
struct PlaceReport {
  std::string cpus;
  std::string nic;
  int32_t nic_distance = -1;  // as topology::Distance; -1: nobody knows
};

class DataPlane {
 public:
  virtual ~DataPlane() = default;

  // The fabric address that another daemon needs to reach this one, and nobody else may know:
  // `guest` is the NodeRoute::guest of the other one (transport::Transport::AddressFor).
  virtual std::vector<std::byte> FabricAddressFor(uint64_t guest) const = 0;
  // The statistics of each NIC. Those that all NICs share (staging, operations) stand with the
  // first, which carries the messages.
  virtual std::vector<NicStatistics> Nics() const = 0;
  NicStatistics Nic() const { return Nics().front(); }
  // Does not wait for the progress thread.
  virtual RegistrationStatistics Registered() const = 0;
  // Begins to record what is done, in memory of a fixed size. kAlreadyExists: that goes on already.
  virtual Status StartTrace() = 0;
  // Ends it. kNotFound: nothing is recorded.
  virtual StatusOr<TraceDump> StopTrace() = 0;
  // The faults that it was configured to have; if asked to, lets go on what stands still.
  virtual std::vector<FaultReport> Faults(bool release) = 0;
  // Empty for a rank that is not served.
  virtual RankReport Inspect(const std::string& job_id, uint32_t rank) const = 0;
  virtual PlaceReport PlaceOf(const Session& session) const = 0;

  virtual Status AddJob(const JobPlan& plan) = 0;
  // Every session of the job must have been released.
  virtual void RemoveJob(const std::string& job_id) = 0;

  // Starts serving a rank.
  virtual Status AddSession(std::shared_ptr<Session> session) = 0;
  // Tells how the removal goes on. Each is called once, in this order, by any thread, perhaps
  // before RemoveSession has returned.
  struct Departure {
    // The rank's last messages have gone out, or will not: after a second at most.
    std::function<void()> said_last;
    // Its pending operations are gone, for which a NIC, or a peer that stands still, may take until
    // they time out.
    std::function<void()> let_go;
  };
  // Stops serving it; returns at once.
  virtual void RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) = 0;
  // After let_go: on return no thread of the data plane touches its segments, its regions or its
  // process any more. Its regions stay mapped, and count against its user's quota, until the NIC
  // has let go of them.
  virtual void ReleaseSession(const std::string& job_id, uint32_t rank) = 0;

  // Has device memory that only streams reach (Region::by_stream) imported by the process that
  // works for the job, to copy between it and the network. kOk: done (Region::device_memory, which
  // must not outlive this); kWouldBlock: its worker process was asked, and PlaneHooks::on_import
  // follows unless that process ends; else its rank is to copy: kConfiguration (so the options
  // say), or why it cannot be imported. Any thread.
  virtual Status ImportRegion(const Session& /*session*/,
                              const std::shared_ptr<Region>& /*region*/) {
    return {ErrorCode::kUnsupported, "no streams here"};
  }

  // Now and then, from the control thread: gives devices back that no imported memory has needed
  // for gpu_idle_release_ms. False once they are. May block while a driver ends.
  virtual bool ReleaseGpus() { return false; }

  // From now on transfers may use the region, of which they have registered with the NIC what they
  // need.
  virtual Status AddRegion(const std::string& job_id, uint32_t rank,
                           std::shared_ptr<const Region> region) = 0;
  // Ends that; returns at once. Calls `done` once, by any thread, perhaps before this has returned:
  // when nothing uses it any more, and the NIC has unpinned it.
  virtual void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                            std::function<void()> done) = 0;
  // Removes it and waits, for a caller that may.
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region) {
    std::promise<void> removed;
    RemoveRegion(job_id, rank, region, [&removed] { removed.set_value(); });
    removed.get_future().wait();
  }

  // Has the NIC take device memory of a rank, before anything depends on it; returns at once. Calls
  // `done` once, by any thread, perhaps before this has returned, unless the plane ends before.
  // kOk: the NIC has all of it; kUnsupported: why some of it has to be staged. It takes seconds at
  // most.
  virtual void ReachWindows(const std::string& /*job_id*/, uint32_t /*rank*/,
                            std::vector<NicWindow> /*windows*/,
                            std::function<void(const Status&)> done) {
    done({ErrorCode::kUnsupported, "no network card here reaches device memory"});
  }

  // Serves one end of a matched pair whose other end is on another node. kNotFound: its rank is not
  // served any more. kUnsupported: its window is device memory that the NIC does not reach.
  virtual Status AddPair(const PairPlan& plan) = 0;
  // Its other end is gone: after its first `rounds` messages all fail with `error`. Unknown ones
  // are ignored.
  virtual void EndPair(const PairName& name, uint64_t rounds, ErrorCode error) = 0;
  // Its own rank has taken it back: on return nothing touches its memory any more, but a NIC that
  // has not let go yet of a message that has failed.
  virtual void RemovePair(const PairName& name) = 0;

  // Routes packets of the job to node `node` of it. After a cut (NodeFailed with kLinkDown) with
  // another life of the link: kWouldBlock while ranks here have not noticed the cut yet (try
  // again); then packets are taken from the node, and NodeReturned, or a first packet from there,
  // lets the ranks send.
  virtual Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) = 0;

  // The node, too, takes packets of the job again: its ranks may be talked to.
  virtual void NodeReturned(const std::string& job_id, uint32_t node) = 0;

  // A rank is gone (anywhere in the job): the sessions of the job here learn it, their pending
  // operations with it fail with `error`, sleepers wake. kNotFound: it has left in good order,
  // which counts behind all that it has sent; of a rank of this node the other nodes are told.
  virtual void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) = 0;
  // A peer daemon (NodeRoute::link) is gone: all its ranks are, with kNodeUnreachable, and
  // operations on the wire fail now. With kLinkDown it is cut off, and may return.
  virtual void NodeFailed(uint64_t link, ErrorCode error) = 0;
  // A rank here and one elsewhere have lost their direct link, and with it perhaps messages. What
  // the first has under way with the other fails with kLinkDown, and so does what it begins, as
  // after a cut of the two nodes. The other node does the same. Unknown ones are ignored.
  virtual void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) = 0;
  // Whether the rank has noticed it, and nothing of before is said any more. Ask again until it is.
  virtual bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) = 0;
  // Whether messages pass between the two again: they do once both nodes have said so much.
  virtual bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) = 0;
  // The job was aborted: every session of it here is poisoned with `error`.
  virtual void PoisonJob(const std::string& job_id, ErrorCode error) = 0;

  // Has `answer` called by the data plane's own thread, soon if it turns. Returns at once.
  virtual void Probe(std::function<void()> answer) = 0;

  // What ranks map the pages of that NIC's counters from (shm::CounterPageWords), as long as this
  // lives; -1: they are given none. Any thread.
  virtual int CounterPages(uint32_t /*nic*/) const { return -1; }

  // True when nothing is queued, on the wire or being copied (for draining).
  virtual bool Idle() const = 0;
};

// The news that the data plane tells the control plane by itself.
//
// Called on the progress thread, seldom: they must not block nor call the data plane back (post to
// a loop instead). Any may be empty.
struct PlaneHooks : progress::CoreHooks {
  // The rank's Session::reach_settled became true (another thread than the others).
  std::function<void(const std::string& job_id, uint32_t rank)> on_reach;
  // A DataPlane::ImportRegion that returned kWouldBlock has ended (the same thread as on_reach).
  std::function<void(const std::string& job_id, uint32_t rank, uint32_t region,
                     const Status& status)>
      on_import;
};

}  // namespace ferry::daemon

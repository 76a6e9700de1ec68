// The NICs of this node that have deferred work: which of them moves the messages of a pair
// (nic_mover.h), and with which jobs it shares its entries.
//
// A pair has one NIC of each node, for life: NIC i of a node reaches NIC i of the others. The
// receive's node chooses, because it is the first that knows both ends: of the NICs that reach the
// other node it takes the one with the fewest bytes to move, and among equals the one nearest to
// the rank.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/status.h"
#include "daemon/triggered/counter_page.h"
#include "internode/registration/registrar.h"
#include "shm/layout/counter_layout.h"
#include "transports/api/deferred_work.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// The administrator's rules.
struct DeferredRules {
  uint32_t most_entries = UINT32_MAX;         // whatever the NIC has; 0: it is given nothing
  std::map<uint32_t, uint32_t> weights = {};  // of jobs, by their owners' uids; else 1
  bool gives_pages = false;                   // ranks may be given the pages of counters

  uint32_t WeightOf(uint32_t owner) const {
    const auto found = weights.find(owner);
    return found == weights.end() ? 1 : found->second;
  }
};

// Shares a NIC's entries for deferred operations, of which there are few, among the jobs by weight.
//
// While jobs want more than there is, each holds its share, to within an operation or two; entries
// that one job does not want are lent to others, and come back as their operations end. A refusal
// means "let the software engine do it", so no operation ever waits for an entry. Where there are
// more jobs than entries, they take turns.
//
// Pure: no clock, one thread.
class DeferredPool {
 public:
  using Job = uint64_t;  // the user's own number
  enum class Place : uint8_t { kNic, kSoftware };
  struct Counts {  // operations, ever
    uint64_t on_nic = 0;
    uint64_t in_software = 0;
  };

  explicit DeferredPool(uint32_t entries) : entries_(entries) {}

  // The pool knows a job from Join to Leave, before which its operations have ended. Its weight is
  // 1 or more.
  void Join(Job job, uint32_t weight);
  void Leave(Job job);

  // Decides where an operation of the job runs. Each Begin has its End.
  Place Begin(Job job);
  void End(Job job, Place place);
  // Notes that the NIC did not take an operation that was to run there: it runs in software.
  void Refused(Job job);

  uint32_t entries() const { return entries_; }
  uint32_t in_use() const { return in_use_; }
  uint32_t HeldBy(Job job) const;
  Counts CountsOf(Job job) const;
  const Counts& counts() const { return counts_; }

 private:
  struct Member {
    uint32_t weight = 1;
    uint32_t held = 0;         // entries
    uint32_t in_software = 0;  // operations under way that were refused one
    double served = 0;         // entries given by weight, to take turns
    Counts counts;

    bool is_active() const { return held != 0 || in_software != 0; }
  };

  bool Grants(const Member& member) const;
  uint64_t ActiveWeight(const Member& member) const;
  uint32_t ShareOf(const Member& member, uint64_t active_weight) const;
  void CatchUp(Member* member) const;

  const uint32_t entries_;
  uint32_t in_use_ = 0;
  std::map<Job, Member> members_;
  Counts counts_;
};

// One of the NIC's counters for all ready sends that one doorbell starts: each store of the stream
// is one addition, which fires the writes of all of them ("Co-Design and Evaluation of a CPU-Free
// MPI GPU Communication Abstraction and Implementation", section V-A). The counter counts what the
// doorbell does.
//
// A send that fails leaves its armed operations behind: a NIC discards them only with the counter,
// for which other sends wait, too. So the counter is closed, and opened anew, as soon as no other
// operation waits for it.
//
// Calling thread: the progress thread. Nothing blocks.
class SharedTrigger {
 public:
  // `deferred` and `doorbell` outlive it.
  SharedTrigger(transport::DeferredWork& deferred, const shm::CounterLayout* doorbell)
      : deferred_(deferred), doorbell_(doorbell) {}
  ~SharedTrigger() { CloseCounter(); }
  SharedTrigger(const SharedTrigger&) = delete;
  SharedTrigger& operator=(const SharedTrigger&) = delete;

  // Adds what the doorbell has counted since the last call.
  void Ring();
  // Returns the NIC's counter; opens it for the first operation. Errors: those of
  // DeferredWork::OpenCounter.
  StatusOr<transport::NicCounter> Counter();

  // Notes that one more operation of the NIC waits for the counter, or has waited.
  void NoteArmed() { ++armed_; }
  // Notes that such an operation has ended, or (`is_left`) that its mover has dropped it and
  // ignores its end.
  void NoteOver(bool is_left);

 private:
  void CloseCounter();

  transport::DeferredWork& deferred_;
  const shm::CounterLayout* const doorbell_;
  std::optional<transport::NicCounter> counter_;
  uint64_t rung_ = 0;
  uint32_t armed_ = 0;
  bool any_left_ = false;
};

// The shared triggers of one NIC, by their doorbells. Each lives as long as a pair holds it.
class SharedTriggers {
 public:
  explicit SharedTriggers(transport::DeferredWork& deferred) : deferred_(deferred) {}

  // Returns the trigger of `doorbell`, which must stay mapped while the caller holds the result.
  std::shared_ptr<SharedTrigger> Hold(const shm::CounterLayout* doorbell);

 private:
  transport::DeferredWork& deferred_;
  std::map<const shm::CounterLayout*, std::weak_ptr<SharedTrigger>> by_doorbell_;
};

// One NIC with deferred work: the state that its movers share.
struct DeferredNic {
  // `its_transport` is one of whole.Rails(), the index-th, and has deferred work.
  DeferredNic(transport::Transport& its_whole, transport::Transport& its_transport,
              uint32_t its_index, progress::Registrar& its_registrar, uint64_t its_timeout_ns,
              uint32_t most_entries);
  ~DeferredNic();
  // Prepares the NIC. `gives_pages`: ranks may get the pages of counters, if the NIC's driver
  // allows that. Errors: those of RegisterMemory and AddPeer.
  Status SetUp(bool gives_pages);

  // Returns true if ranks are given the pages of this NIC's counters. Any thread may ask, as for
  // page_descriptor.
  bool gives_pages() const { return page_descriptor >= 0; }
  uint64_t NextPage() { return ++last_page_; }

  // Join counts a pair of the job in, Leave out once its operations have ended. The job's weight is
  // that of its first pair.
  void Join(DeferredPool::Job job, uint32_t weight, uint64_t size_bytes);
  void Leave(DeferredPool::Job job, uint64_t size_bytes);

  transport::Transport& whole;
  transport::Transport& transport;
  const uint32_t index;
  transport::DeferredWork& deferred;
  progress::Registrar& registrar;
  const uint64_t timeout_ns;  // of an operation, from when its trigger was seen reached
  SharedTriggers triggers;
  DeferredPool pool;
  std::map<DeferredPool::Job, uint32_t> pairs;  // how many there are of each
  uint64_t load_bytes = 0;                      // of all
  transport::PeerId self{};                     // this node, as a peer
  alignas(8) uint64_t scratch = 0;  // whatever it holds: what clears to send in software
  transport::MemoryRegion scratch_region;
  int page_descriptor = -1;  // of the file that has the pages; the NIC's
  ParkedCounters parked;

 private:
  uint64_t last_page_ = 0;
};

class DeferredNics {
 public:
  // There is no such NIC if the transport's NICs have no deferred work, or the rules leave them no
  // entries. All arguments outlive this object; after its end no thread collects from the
  // registrar.
  DeferredNics(transport::Transport& transport, progress::Registrar& registrar, uint64_t timeout_ns,
               const DeferredRules& rules);

  // Returns the number of the transport's NICs, used or not.
  size_t size() const { return nics_.size(); }
  bool any() const;
  // Returns the pool of that NIC; null: it has no deferred work.
  const DeferredPool* pool(size_t nic) const;

  // Asks which NICs reach that peer, from which receives are to come; the answers take a moment.
  void Expect(transport::PeerId peer);
  // Chooses the NIC for a receive from that peer by a rank whose nearest NIC is `nearest`. Errors:
  // kWouldBlock (not all have answered, but may yet), kNotFound (none of them reaches it).
  ErrorCode Choose(transport::PeerId peer, uint32_t nearest, uint32_t* nic);
  // Returns the NIC of that number, if it moves messages to and from that peer of the transport;
  // the number may come from the other node, unchecked. Null: there is no such NIC here, or there,
  // or it has no deferred work.
  DeferredNic* Find(uint32_t nic, transport::PeerId peer);

  // Returns the descriptor from which ranks map the pages of that NIC's counters; -1: they do not
  // map them. Any thread. It is open as long as this object lives.
  int PageDescriptor(uint32_t nic) const;
  // Closes the parked counters of a rank that has gone, and so stores to no page any more.
  void ClosePagesOf(const void* rank);

  // Call it once in a turn. Returns how much was done.
  uint32_t Poll(transport::DeferredSink& sink, uint64_t now_ns);
  uint64_t NextNs(uint64_t now_ns) const;

 private:
  transport::Transport& transport_;
  std::vector<std::unique_ptr<DeferredNic>> nics_;  // by rail; null: it has no deferred work
};

}  // namespace ferry::daemon

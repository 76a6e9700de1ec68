// The NIC's counters of one transport: opens and reads them, and closes them when nothing uses them
// any more.
//
// Calling thread: the progress thread, but for Bindable.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <sys/uio.h>

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/error_code.h"
#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/deferred_work.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/library.h"
#include "transports/ofi/operation.h"

namespace ferry::transport {

struct CounterState;

// One entry of a NIC's deferred work. The life of an entry:
//
//   kFree -> kArmed              accepted by the provider
//   kArmed -> kEnding            done, failed or cancelled: the next Poll reports it
//   kEnding -> kFree             reported, and the NIC does not hold it
//   kEnding -> kAbandoned -> kFree   reported, and the NIC let go of it later
//
// The provider reads and writes the entry for as long as it holds it.
struct DeferredEntry {
  enum class State : uint8_t { kFree, kArmed, kEnding, kAbandoned };

  // The part that the provider sees. Its completions point to `work`, which comes first.
  fi_deferred_work work{};
  fi_op_rma rma{};
  fi_op_atomic atomic{};
  iovec local{};
  fi_rma_iov remote{};
  fi_ioc operand{};
  fi_rma_ioc word{};
  void* descriptor = nullptr;

  State state = State::kFree;
  bool held = false;  // by the NIC
  ErrorCode result = ErrorCode::kOk;
  bool takes_entry = false;  // of the NIC's
  uint64_t context = 0;
  uint64_t threshold = 0;
  uint64_t abandoned_ns = 0;
  CounterState* trigger = nullptr;  // null once the counter is closed
  CounterState* done = nullptr;
  Peer* peer = nullptr;
  Region* region = nullptr;

  ListLink life_link;     // in the list of free or of ending entries
  ListLink waiting_link;  // in the list of `trigger`
  ListLink report_link;   // in the list of `done`
};

template <ListLink DeferredEntry::*kLink>
using EntryList =
    boost::intrusive::list<DeferredEntry,
                           boost::intrusive::member_hook<DeferredEntry, ListLink, kLink>,
                           boost::intrusive::constant_time_size<false>>;
using EntryLifeList = EntryList<&DeferredEntry::life_link>;
using WaitingEntries = EntryList<&DeferredEntry::waiting_link>;
using ReportingEntries = EntryList<&DeferredEntry::report_link>;

struct CounterState {
  NicCounter id{};
  FidPtr<fid_cntr> counter;
  uint64_t value = 0;  // as last read; wider than some providers' own
  uint64_t added = 0;  // the part of it added by AddToCounter
  uint64_t ended = 0;  // the part of it added by operations that have ended
  CounterDoorbell doorbell;
  bool closing = false;
  uint64_t closing_ns = 0;   // when closing began; 0: the time was not read yet
  uint64_t due_ns = 0;       // since when waiting operations are due and do not end; 0: none is
  WaitingEntries waiting;    // waiting for it, or fired by it and still held
  ReportingEntries reports;  // will add to it, in the order in which they were armed
  ListLink reporting_link;   // in the list of counters with reports
};

class OfiCounters {
 public:
  explicit OfiCounters(const Endpoint* endpoint);

  // These functions do what those of DeferredWork do.
  StatusOr<NicCounter> Open();
  void Add(CounterState* counter, uint64_t n);
  uint64_t Read(CounterState* counter);
  // Returns true if each read returns the value that an earlier one has asked the NIC for, and asks
  // for another.
  bool reads_late() const { return !is_narrow_; }
  uint64_t max_threshold() const { return is_narrow_ ? INT32_MAX : kWidestThreshold; }

  // Returns the counter of that id; null if there is none, or if it is closing.
  CounterState* Find(NicCounter id);
  // Returns the libfabric counter of that id, to which a target's registration is bound. Any
  // thread.
  StatusOr<fid_cntr*> Bindable(NicCounter id);
  // Closes a counter to which no operation reports. Returns true if it is closed, so that no
  // operation that waits for it fires any more; call Erase then. False: something is still bound to
  // it.
  bool TryClose(CounterState* counter);
  void Erase(CounterState* counter);

 private:
  static constexpr uint64_t kWidestThreshold = (uint64_t{1} << 48) - 1;  // the narrowest NIC's

  const Endpoint* endpoint_;
  const bool is_narrow_;  // the provider counts in 32 bits, and compares them signed
  std::mutex mutex_;      // held while the table changes, and by Bindable
  SlotMap<NicCounter, CounterState> counters_;
};

}  // namespace ferry::transport

// The NIC's counters of one transport: opened, read, closed when nothing uses them any more.
//
// Calling thread: the progress thread, but for Bindable.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/deferred_work.h"
#include "transports/ofi/deferred_entry.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/fid.h"

namespace ferry::transport {

struct CounterState {
  NicCounter id{};
  FidPtr<fid_cntr> counter;
  uint64_t value = 0;  // as last read; wider than some providers' own
  uint64_t added = 0;  // the part of it added by AddToCounter
  uint64_t ended = 0;  // the part of it added by operations that have ended
  bool writes_back = false;
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

  // As in DeferredWork.
  StatusOr<NicCounter> Open(uint64_t* write_back);
  void Add(CounterState* counter, uint64_t n);
  uint64_t Read(CounterState* counter);
  // Whether a read returns the value last written back, and requests another write-back.
  bool reads_late() const { return !is_narrow_; }
  uint64_t max_threshold() const { return is_narrow_ ? INT32_MAX : kWidestThreshold; }

  // Null if there is none, or if it is closing.
  CounterState* Find(NicCounter id);
  // The same for a target's registration: any thread.
  StatusOr<fid_cntr*> Bindable(NicCounter id);
  // Only for counters that nothing reports to. True: it is closed, and nothing that waits for it
  // fires any more; call Erase then. False: something is still bound to it.
  bool TryClose(CounterState* counter);
  void Erase(CounterState* counter);

 private:
  static constexpr uint64_t kWidestThreshold = (uint64_t{1} << 48) - 1;  // the narrowest NIC's

  Status SetUp(CounterState* state, uint64_t* write_back) const;

  const Endpoint* endpoint_;
  const bool is_narrow_;  // the provider counts in 32 bits, and compares them signed
  std::mutex mutex_;      // held by whoever changes the table, and by Bindable
  SlotMap<NicCounter, CounterState> counters_;
};

}  // namespace ferry::transport

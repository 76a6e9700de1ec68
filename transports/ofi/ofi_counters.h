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
  uint64_t added = 0;  // of it, by AddToCounter
  uint64_t ended = 0;  // of it, by operations that have ended
  bool writes_back = false;
  CounterDoorbell doorbell;
  bool closing = false;
  uint64_t closing_ns = 0;   // since then; 0: nobody has looked at the time yet
  uint64_t due_ns = 0;       // what waits for it is due since then, and does not end; 0: no
  WaitingEntries waiting;    // for it, or fired by it and not let go of
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
  // Whether a read gives what the counter was when it was last written back, and asks for that.
  bool reads_late() const { return !is_narrow_; }
  uint64_t max_threshold() const { return is_narrow_ ? INT32_MAX : kWidestThreshold; }

  // Null if there is none, or if it is closing.
  CounterState* Find(NicCounter id);
  // The same for a target's registration: any thread.
  StatusOr<fid_cntr*> Bindable(NicCounter id);
  // Only for counters that nothing reports to. True: closed, and nothing that waits for it fires
  // any more; then Erase. False: something is bound to it still.
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

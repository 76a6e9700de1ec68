// One entry of a NIC's deferred work. The life of an entry:
//
//   kFree -> kArmed              accepted by the provider
//   kArmed -> kEnding            done, failed or cancelled: the next Poll reports it
//   kEnding -> kFree             reported, and the NIC does not hold it
//   kEnding -> kAbandoned -> kFree   reported, and the NIC let go of it later
//
// The provider reads and writes the entry for as long as it holds it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <sys/uio.h>

#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "common/error_code.h"
#include "transports/ofi/operation.h"

namespace ferry::transport {

struct CounterState;

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
  uint32_t cost = 0;  // how many of the NIC's entries it takes
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

}  // namespace ferry::transport

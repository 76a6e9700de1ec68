#include "transports/ofi/ofi_deferred.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "transports/ofi/cxi_extension.h"
#include "transports/ofi/library.h"
#include "transports/ofi/page_source.h"

namespace ferry::transport {
namespace {

constexpr uint32_t kDefaultEntries = kCxiEntries;  // of a NIC that does not tell
constexpr uint32_t kSlotsPerEntry = 2;
// The time between looks at the counters: short while operations end, long while all wait for a
// trigger.
constexpr uint64_t kShortScanNs = 50'000;
constexpr uint64_t kLongScanNs = 5'000'000;
constexpr uint64_t kFreshNs =
    2'000'000;  // until the value of a counter that was asked for has come
constexpr uint64_t kForgetNs = 30'000'000'000;
constexpr uint64_t kPatienceNs = 1'000'000;  // for operations that are due, before a push

bool IsSockets(const Endpoint& endpoint) {
  return std::string_view(endpoint.info->fabric_attr->prov_name) == "sockets";
}

// 0: the NIC does not tell.
uint32_t EntriesOf(const Endpoint& endpoint) {
  const CxiDomainOps* ops = FindCxiDomainOps(endpoint.domain.get());
  size_t depth = 0;
  if (ops == nullptr || ops->get_dwq_depth(&endpoint.domain->fid, &depth) != 0) {
    return 0;
  }
  return static_cast<uint32_t>(std::min<size_t>(depth, kCxiEntries));
}

// Ends are told apart by counting, so operations that report to one counter must end in order.
bool InOrder(const DeferredEntry& last, const CounterState& trigger, const DeferredTrigger& next,
             const Peer* peer) {
  return last.work.triggering_cntr == trigger.counter.get() && last.threshold <= next.threshold &&
         last.peer == peer;
}

}  // namespace

bool OfiDeferred::Has(const Endpoint& endpoint) {
  constexpr uint64_t kNeeded = FI_TRIGGER | FI_RMA_EVENT | FI_ATOMIC;
  return (endpoint.info->caps & kNeeded) == kNeeded;
}

StatusOr<std::unique_ptr<OfiDeferred>> OfiDeferred::Create(const Endpoint& endpoint,
                                                           uint32_t wanted_entries,
                                                           RegionTable* regions,
                                                           DeferredPeers* peers) {
  const uint32_t of_nic = EntriesOf(endpoint);
  if (of_nic != 0 && wanted_entries > of_nic) {
    return Status(ErrorCode::kLimitExceeded,
                  "TransportOptions: deferred_entries is " + std::to_string(wanted_entries) +
                      "; NIC " + endpoint.description.domain + " has " + std::to_string(of_nic));
  }
  const uint32_t default_entries = of_nic != 0 ? of_nic : kDefaultEntries;
  StatusOr<std::unique_ptr<Arena>> operand = Arena::Create(endpoint, sizeof(uint64_t));
  FERRY_RETURN_IF_ERROR(operand.status());
  return std::unique_ptr<OfiDeferred>(
      new OfiDeferred(endpoint, wanted_entries != 0 ? wanted_entries : default_entries, regions,
                      peers, std::move(*operand)));
}

OfiDeferred::OfiDeferred(const Endpoint& endpoint, uint32_t entries, RegionTable* regions,
                         DeferredPeers* peers, std::unique_ptr<Arena> operand)
    : endpoint_(endpoint),
      entries_(entries),
      max_write_bytes_(endpoint.info->ep_attr->max_msg_size),
      pushes_on_(IsSockets(endpoint)),
      regions_(regions),
      peers_(peers),
      operand_(std::move(operand)),
      counters_(&endpoint) {
  *reinterpret_cast<uint64_t*>(operand_->base()) = 1;
}

// ---- Counters

StatusOr<NicCounter> OfiDeferred::OpenCounter() {
  if (slots_.empty()) {
    slots_ = std::vector<DeferredEntry>(size_t{entries_} * kSlotsPerEntry);
    for (DeferredEntry& entry : slots_) {
      free_.push_back(entry);
    }
  }
  closing_.reserve(closing_.size() + 1);
  StatusOr<NicCounter> opened = counters_.Open();
  statistics_.counters += opened.ok() ? 1 : 0;
  return opened;
}

void OfiDeferred::CloseCounter(NicCounter id) {
  CounterState* counter = counters_.Find(id);
  if (counter == nullptr) {
    return;
  }
  counter->closing = true;
  for (DeferredEntry& entry : counter->waiting) {
    if (entry.state == DeferredEntry::State::kArmed) {
      End(&entry, ErrorCode::kCancelled, /*still_held=*/true);
    }
  }
  closing_.push_back(counter);
  CloseIfUnused(/*now_ns=*/0);
}

// Returns true if a closing counter's value is its last one: nothing adds to it, and it has been
// read.
bool OfiDeferred::IsSettled(CounterState* counter, uint64_t now_ns) {
  if (!counter->reports.empty()) {
    counter->closing_ns = 0;
    return false;
  }
  if (!counters_.reads_late()) {
    return true;
  }
  if (counter->closing_ns == 0) {
    counter->closing_ns = now_ns;
    counters_.Read(counter);
  }
  return counter->closing_ns != 0 && now_ns - counter->closing_ns >= kFreshNs;
}

// Closes counters whose operations are over. Operations that wait for a counter are discarded with
// it. One that the counter had fired may still be under way, and is released when it ends.
void OfiDeferred::CloseIfUnused(uint64_t now_ns) {
  bool again = true;
  while (again) {
    again = false;  // discarding for one counter may free another
    for (size_t i = 0; i < closing_.size(); i++) {
      CounterState* counter = closing_[i];
      if (!IsSettled(counter, now_ns)) {
        continue;
      }
      const uint64_t reached = counters_.Read(counter);
      if (!counters_.TryClose(counter)) {
        continue;
      }
      for (auto next = counter->waiting.begin(); next != counter->waiting.end();) {
        DeferredEntry& entry = *next++;  // LetGo takes it off the list
        if (reached < entry.threshold) {
          LetGo(&entry);
        } else {
          ReleaseEntry(&entry);
          counter->waiting.erase(counter->waiting.iterator_to(entry));
          entry.trigger = nullptr;
        }
      }
      counters_.Erase(counter);
      statistics_.counters--;
      closing_.erase(closing_.begin() + static_cast<ptrdiff_t>(i));
      again = true;
      break;
    }
  }
}

void OfiDeferred::AddToCounter(NicCounter id, uint64_t n) {
  if (CounterState* counter = counters_.Find(id); counter != nullptr) {
    LookSoon();
    statistics_.rings++;
    counters_.Add(counter, n);
  }
}

uint64_t OfiDeferred::ReadCounter(NicCounter id) {
  CounterState* counter = counters_.Find(id);
  return counter == nullptr ? 0 : counters_.Read(counter);
}

CounterDoorbell OfiDeferred::Doorbell(NicCounter id) {
  CounterState* counter = counters_.Find(id);
  if (counter == nullptr) {
    return {};
  }
  CounterDoorbell doorbell = counter->doorbell;
  if (doorbell.page == nullptr || keeps_pages_) {
    return doorbell;
  }
  const std::optional<uint64_t> offset =
      FindPageSource(doorbell.page, doorbell.page_bytes, &page_descriptor_);
  keeps_pages_ = !offset.has_value();
  if (offset) {
    doorbell.descriptor = page_descriptor_.get();
    doorbell.offset = *offset;
  }
  return doorbell;
}

StatusOr<std::unique_ptr<Registration>> OfiDeferred::PrepareTarget(
    void* base, uint64_t bytes, NicCounter counter, const std::optional<DeviceMemory>& device) {
  StatusOr<fid_cntr*> bindable = counters_.Bindable(counter);
  FERRY_RETURN_IF_ERROR(bindable.status());
  constexpr Access kAccess = Access::kRemoteRead | Access::kRemoteWrite;
  return device ? regions_->PrepareDevice(*device, base, bytes, kAccess, *bindable)
                : regions_->Prepare(base, bytes, kAccess, *bindable);
}

// ---- Arming

ErrorCode OfiDeferred::Take(const Request& request, Region* region, DeferredEntry** entry) {
  CounterState* trigger = counters_.Find(request.trigger.counter);
  CounterState* done = counters_.Find(request.done);
  if (trigger == nullptr || done == nullptr) {
    return ErrorCode::kNotFound;
  }
  if (request.trigger.threshold > max_threshold()) {
    return ErrorCode::kLimitExceeded;
  }
  ErrorCode code = ErrorCode::kOk;
  Peer* peer = peers_->Usable(request.peer, &code);
  if (peer == nullptr) {
    return code;
  }
  if (!done->reports.empty() && !InOrder(done->reports.back(), *trigger, request.trigger, peer)) {
    return ErrorCode::kInvalidArgument;
  }
  if (in_use_ >= entries_) {
    RetireAll();
  }
  if (in_use_ >= entries_ || (free_.empty() && !ending_.empty())) {
    statistics_.refused++;
    return ErrorCode::kWouldBlock;
  }
  if (free_.empty()) {
    return ErrorCode::kLimitExceeded;
  }
  DeferredEntry* taken = &free_.front();
  taken->takes_entry = true;
  taken->context = request.context;
  taken->threshold = request.trigger.threshold;
  taken->trigger = trigger;
  taken->done = done;
  taken->peer = peer;
  taken->region = region;
  taken->work = {};
  taken->work.threshold = request.trigger.threshold;
  taken->work.triggering_cntr = trigger->counter.get();
  taken->work.completion_cntr = done->counter.get();
  *entry = taken;
  return ErrorCode::kOk;
}

ErrorCode OfiDeferred::ArmWrite(const DeferredWrite& write) {
  if (write.bytes == 0 || write.bytes > max_write_bytes_) {
    return ErrorCode::kInvalidArgument;
  }
  Region* region = regions_->Find(write.region);
  if (region == nullptr || !region->Contains(write.local, write.bytes)) {
    return ErrorCode::kInvalidBuffer;
  }
  DeferredEntry* entry = nullptr;
  const ErrorCode code =
      Take({write.trigger, write.done, write.peer, write.context}, region, &entry);
  if (code != ErrorCode::kOk) {
    return code;
  }
  entry->local = {const_cast<void*>(write.local), write.bytes};
  entry->remote = {write.remote_address, write.bytes, write.key};
  entry->descriptor = region->descriptor;
  entry->rma.ep = endpoint_.endpoint.get();
  entry->rma.msg = {&entry->local,
                    &entry->descriptor,
                    1,
                    entry->peer->address,
                    &entry->remote,
                    1,
                    &entry->work.context,
                    0};
  entry->rma.flags = 0;
  entry->work.op_type = FI_OP_WRITE;
  entry->work.op.rma = &entry->rma;
  return Queue(entry);
}

ErrorCode OfiDeferred::ArmIncrement(const DeferredIncrement& increment) {
  if (increment.remote_address % sizeof(uint64_t) != 0) {
    return ErrorCode::kInvalidBuffer;
  }
  DeferredEntry* entry = nullptr;
  const ErrorCode code =
      Take({increment.trigger, increment.done, increment.peer, increment.context}, nullptr, &entry);
  if (code != ErrorCode::kOk) {
    return code;
  }
  entry->operand = {operand_->base(), 1};
  entry->word = {increment.remote_address, 1, increment.key};
  entry->descriptor = operand_->descriptor();
  entry->atomic.ep = endpoint_.endpoint.get();
  entry->atomic.msg = {
      &entry->operand, &entry->descriptor,   1, entry->peer->address, &entry->word, 1, FI_UINT64,
      FI_SUM,          &entry->work.context, 0};
  entry->atomic.flags = 0;
  entry->work.op_type = FI_OP_ATOMIC;
  entry->work.op.atomic = &entry->atomic;
  return Queue(entry);
}

// Hands a free entry that has been filled in to the provider, which may fire it at once.
ErrorCode OfiDeferred::Queue(DeferredEntry* entry) {
  Link(entry);
  const int error = fi_control(&endpoint_.domain->fid, FI_QUEUE_WORK, &entry->work);
  if (error == 0) {
    statistics_.armed++;
    scan_interval_ns_ = kShortScanNs;
    return ErrorCode::kOk;
  }
  entry->state = DeferredEntry::State::kFree;
  Unlink(entry);
  ReleaseEntry(entry);
  free_.push_front(*entry);
  if (error == -FI_EAGAIN || error == -FI_ENOSPC) {
    statistics_.refused++;
    return ErrorCode::kWouldBlock;
  }
  return OperationError(-error);
}

void OfiDeferred::Link(DeferredEntry* entry) {
  free_.erase(free_.iterator_to(*entry));
  entry->state = DeferredEntry::State::kArmed;
  entry->held = true;
  ++in_use_;
  entry->peer->held++;
  if (entry->region != nullptr) {
    entry->region->users++;
  }
  entry->trigger->waiting.push_back(*entry);
  if (entry->done->reports.empty()) {
    reporting_.push_back(*entry->done);
  }
  entry->done->reports.push_back(*entry);
}

void OfiDeferred::Unlink(DeferredEntry* entry) {
  if (entry->trigger != nullptr) {
    entry->trigger->waiting.erase(entry->trigger->waiting.iterator_to(*entry));
    entry->trigger = nullptr;
  }
  entry->done->reports.erase(entry->done->reports.iterator_to(*entry));
  if (entry->done->reports.empty()) {
    reporting_.erase(reporting_.iterator_to(*entry->done));
  }
  entry->held = false;
  if (entry->region != nullptr) {
    entry->region->users--;
  }
  entry->peer->held--;
  peers_->ForgetIfIdle(entry->peer);
}

// ---- Ends

void OfiDeferred::Count(ErrorCode code) {
  statistics_.done += code == ErrorCode::kOk ? 1 : 0;
  statistics_.cancelled += code == ErrorCode::kCancelled ? 1 : 0;
  statistics_.failed += code != ErrorCode::kOk && code != ErrorCode::kCancelled ? 1 : 0;
}

// A discarded operation takes room on the NIC until its trigger's counter is closed.
void OfiDeferred::ReleaseEntry(DeferredEntry* entry) {
  in_use_ -= std::exchange(entry->takes_entry, false) ? 1 : 0;
}

void OfiDeferred::End(DeferredEntry* entry, ErrorCode code, bool still_held) {
  Count(code);
  entry->result = code;
  entry->state = DeferredEntry::State::kEnding;
  ending_.push_back(*entry);
  if (!still_held) {
    Unlink(entry);
    ReleaseEntry(entry);
  }
}

// The NIC has let go of an entry.
void OfiDeferred::LetGo(DeferredEntry* entry) {
  Unlink(entry);
  ReleaseEntry(entry);
  if (entry->state == DeferredEntry::State::kAbandoned) {
    statistics_.abandoned--;
    Free(entry);
  }  // else Report frees it
}

void OfiDeferred::Free(DeferredEntry* entry) {
  entry->state = DeferredEntry::State::kFree;
  free_.push_front(*entry);
}

bool OfiDeferred::Owns(const void* op_context) const {
  const std::less<> before;
  return !slots_.empty() && !before(op_context, slots_.data()) &&
         before(op_context, slots_.data() + slots_.size());
}

void OfiDeferred::OnError(void* op_context, ErrorCode code) {
  const auto at = static_cast<std::byte*>(op_context) - reinterpret_cast<std::byte*>(slots_.data());
  DeferredEntry* entry = &slots_[static_cast<size_t>(at) / sizeof(DeferredEntry)];
  if (!entry->held) {
    return;
  }
  if (entry->state == DeferredEntry::State::kArmed) {
    End(entry, code, /*still_held=*/false);
  } else {
    LetGo(entry);
  }
}

// Ends the operations that the counter has counted since the last look, in whole groups of one
// trigger, since the NIC keeps no order within a group.
bool OfiDeferred::Retire(CounterState* counter) {
  const uint64_t value = counters_.Read(counter);
  uint64_t ends = value - counter->added - counter->ended;
  bool any = false;
  while (ends > 0 && !counter->reports.empty()) {
    DeferredEntry& first = counter->reports.front();
    uint64_t size = 0;
    for (const DeferredEntry& entry : counter->reports) {
      if (entry.work.triggering_cntr != first.work.triggering_cntr ||
          entry.threshold != first.threshold) {
        break;
      }
      size++;
    }
    if (size > ends) {
      break;
    }
    ends -= size;
    counter->ended += size;
    if (first.trigger != nullptr) {
      first.trigger->due_ns = 0;
    }
    for (; size > 0; size--) {
      DeferredEntry* entry = &counter->reports.front();
      if (entry->state == DeferredEntry::State::kArmed) {
        End(entry, ErrorCode::kOk, /*still_held=*/false);
      } else {
        LetGo(entry);
      }
    }
    any = true;
  }
  return any;
}

// `sockets` stops firing when its queue is full, and goes on when the counter is touched.
void OfiDeferred::PushOn(CounterState* trigger, uint64_t now_ns) {
  if (trigger->due_ns == 0) {
    trigger->due_ns = now_ns;
  } else if (now_ns - trigger->due_ns >= kPatienceNs) {
    trigger->due_ns = now_ns;
    statistics_.resumed++;
    fi_cntr_add(trigger->counter.get(), 0);
  }
}

bool OfiDeferred::RetireAll() {
  bool any = false;
  for (auto next = reporting_.begin(); next != reporting_.end();) {
    CounterState& counter = *next++;  // Retire may take it off the list
    any |= Retire(&counter);
  }
  return any;
}

// An operation that a NIC has begun and never ends (its peer was already dead) keeps its slot, but
// not the memory that it would read: no NIC takes that long.
void OfiDeferred::ForgetLost(uint64_t now_ns) {
  for (DeferredEntry& entry : slots_) {
    if (entry.state == DeferredEntry::State::kAbandoned && entry.region != nullptr &&
        now_ns - entry.abandoned_ns >= kForgetNs) {
      entry.region->users--;
      entry.region = nullptr;
    }
  }
}

void OfiDeferred::LookSoon() {
  scan_interval_ns_ = kShortScanNs;
  next_scan_ns_ = 0;
}

void OfiDeferred::Scan(uint64_t now_ns) {
  if (statistics_.abandoned != 0) {
    ForgetLost(now_ns);
  }
  bool busy = RetireAll();
  for (CounterState& counter : reporting_) {
    const DeferredEntry& first = counter.reports.front();
    if (pushes_on_ && first.trigger != nullptr &&
        counters_.Read(first.trigger) >= first.threshold) {
      PushOn(first.trigger, now_ns);
      busy = true;
    }
  }
  scan_interval_ns_ = busy ? kShortScanNs : std::min(scan_interval_ns_ * 2, kLongScanNs);
  next_scan_ns_ = now_ns + scan_interval_ns_;
}

int OfiDeferred::Poll(DeferredSink& sink, uint64_t now_ns) {
  if (now_ns >= next_scan_ns_) {
    Scan(now_ns);
  }
  if (!closing_.empty()) {
    CloseIfUnused(now_ns);
  }
  return Report(sink, now_ns);
}

int OfiDeferred::Report(DeferredSink& sink, uint64_t now_ns) {
  int ends = 0;
  while (!ending_.empty()) {
    DeferredEntry* entry = &ending_.front();
    ending_.pop_front();
    const uint64_t context = entry->context;
    const ErrorCode result = entry->result;
    if (entry->held) {
      entry->state = DeferredEntry::State::kAbandoned;
      entry->abandoned_ns = now_ns;
      statistics_.abandoned++;
    } else {
      Free(entry);
    }
    sink.OnDeferredEnd(context, result);
    ends++;
  }
  return ends;
}

uint64_t OfiDeferred::NextPollNs(uint64_t now_ns) const {
  if (!ending_.empty()) {
    return now_ns;
  }
  return reporting_.empty() && closing_.empty() ? UINT64_MAX : std::max(next_scan_ns_, now_ns);
}

}  // namespace ferry::transport

#include "gpu_backends/host/host_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/clock.h"

namespace ferry::gpu {

HostEvent::HostEvent(const ForkGuard* fork_guard)
    : fork_guard_(fork_guard), state_(std::make_unique<State>()) {}

HostEvent::~HostEvent() {
  if (fork_guard_->InChild()) {
    (void)state_.release();  // threads that are gone here waited for it: it cannot be destroyed
  }
}

Status HostEvent::Query() {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  const std::shared_ptr<Completion> completion = Current();
  return completion == nullptr ? Status() : completion->Query();
}

Status HostEvent::Synchronize() {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  const std::shared_ptr<Completion> completion = Current();
  return completion == nullptr ? Status() : completion->Wait();
}

std::shared_ptr<Completion> HostEvent::Current() {
  std::lock_guard lock(state_->mutex);
  return state_->completion;
}

void HostEvent::SetCurrent(std::shared_ptr<Completion> completion) {
  std::lock_guard lock(state_->mutex);
  state_->completion = std::move(completion);
}

HostStream::HostStream(int device, const AllocationTable* table, const ForkGuard* fork_guard,
                       EmulatedLink* link, const HostStreamCosts& costs, uint64_t wait_yield_ns)
    : device_(device),
      table_(table),
      checks_(*table),
      fork_guard_(fork_guard),
      link_(link),
      worker_(std::make_unique<StreamWorker>(wait_yield_ns, link, costs)) {}

HostStream::~HostStream() {
  if (fork_guard_->InChild()) {
    (void)worker_.release();  // its thread does not exist here and cannot be joined
  }
}

CopyOperation HostStream::CopyOf(void* destination, const void* source, uint64_t size_bytes) const {
  CopyOperation copy{destination, source, size_bytes, {}, 0};
  if (link_ != nullptr) {
    copy.route = Route(destination, source);
    copy.destination = table_->Behind(destination);
    copy.source = table_->Behind(source);
    copy.enqueued_ns = MonotonicNs();
  }
  return copy;
}

Status HostStream::CopyAsync(void* destination, const void* source, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  if (size_bytes == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(checks_.Copy(destination, source, size_bytes, "CopyAsync"));
  return worker_->Enqueue(CopyOf(destination, source, size_bytes));
}

Status HostStream::CopyStrided(const StridedCopy& copy) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  if (copy.block_bytes == 0 || copy.block_count == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(checks_.Strided(copy));
  StridedOperation operation{copy, copy.is_pack
                                       ? CopyOf(copy.packed, copy.blocks, copy.size_bytes())
                                       : CopyOf(copy.blocks, copy.packed, copy.size_bytes())};
  operation.copy.blocks = table_->Behind(copy.blocks);
  operation.copy.packed = table_->Behind(copy.packed);
  return worker_->Enqueue(operation);
}

// The link to another device counts, where there is one: it is the slower part.
CopyOperation HostStream::CostOf(std::span<void* const> to, std::span<const void* const> from,
                                 uint64_t size_bytes) const {
  CopyOperation slowest{};
  for (size_t i = 0; i < std::max(to.size(), from.size()); ++i) {
    const CopyOperation cost =
        CopyOf(to[std::min(i, to.size() - 1)], from[std::min(i, from.size() - 1)], size_bytes);
    if (i == 0 || cost.route.from_device != cost.route.to_device) {
      slowest = cost;
    }
  }
  return slowest;
}

Status HostStream::CopySpread(const SpreadCopy& copy) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  if (copy.block_bytes == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(checks_.Spread(copy));
  SpreadOperation operation{copy, CostOf({copy.destinations.data(), copy.destination_count},
                                         {copy.sources.data(), copy.source_count},
                                         copy.size_bytes() * copy.destination_count)};
  for (void*& destination : operation.copy.destinations) {
    destination = table_->Behind(destination);
  }
  for (const void*& source : operation.copy.sources) {
    source = table_->Behind(source);
  }
  return worker_->Enqueue(operation);
}

Status HostStream::Reduce(const Reduction& reduction) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  FERRY_RETURN_IF_ERROR(checks_.Reduce(reduction));
  if (reduction.count == 0) {
    return {};
  }
  // All operands but one come over the link, and all results go over it, the other way.
  std::array<void*, Reduction::kMost> to{};
  std::array<const void*, Reduction::kMost> from{};
  for (size_t i = 0; i < reduction.result_count(); ++i) {
    to[i] = reduction.result(i);
  }
  for (size_t i = 0; i < reduction.operand_count(); ++i) {
    from[i] = reduction.operand(i);
  }
  ReduceOperation operation{
      reduction,
      CostOf({to.data(), reduction.result_count()}, {from.data(), reduction.operand_count()},
             reduction.size_bytes() *
                 std::max(reduction.operand_count() - 1, reduction.result_count()))};
  for (size_t i = 0; i < reduction.result_count(); ++i) {
    operation.reduction.result(i) = table_->Behind(to[i]);
  }
  for (size_t i = 0; i < reduction.operand_count(); ++i) {
    operation.reduction.operand(i) = table_->Behind(from[i]);
  }
  return worker_->Enqueue(operation);
}

Status HostStream::LaunchMove(const MatchedMove& move) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  FERRY_RETURN_IF_ERROR(checks_.LaunchMove(move));
  MoveOperation operation{move, {}};
  if (move.size_bytes != 0) {
    operation.copy = CopyOf(move.destination, move.source, move.size_bytes);
  }
  return worker_->Enqueue(operation);
}

Status HostStream::AwaitMove(const MatchedMove& move) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  FERRY_RETURN_IF_ERROR(checks_.AwaitMove(move));
  return worker_->Enqueue(AwaitMoveOperation{move});
}

Status HostStream::RecordEvent(Event* event) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  StatusOr<HostEvent*> host_event = OwnEvent<HostEvent>(event, "RecordEvent");
  FERRY_RETURN_IF_ERROR(host_event.status());
  auto completion = std::make_shared<Completion>();
  FERRY_RETURN_IF_ERROR(worker_->Enqueue(RecordOperation{completion}));
  (*host_event)->SetCurrent(std::move(completion));
  return {};
}

Status HostStream::WaitEvent(Event* event) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  StatusOr<HostEvent*> host_event = OwnEvent<HostEvent>(event, "WaitEvent");
  FERRY_RETURN_IF_ERROR(host_event.status());
  std::shared_ptr<Completion> completion = (*host_event)->Current();
  if (completion == nullptr) {
    return {};
  }
  return worker_->Enqueue(WaitEventOperation{std::move(completion)});
}

Status HostStream::WriteValue64(uint64_t* word, uint64_t value) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  FERRY_RETURN_IF_ERROR(checks_.Word(word));
  return worker_->Enqueue(WriteOperation{static_cast<uint64_t*>(table_->Behind(word)), value});
}

Status HostStream::WaitValue64(uint64_t* word, uint64_t value, WaitCondition condition) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  FERRY_RETURN_IF_ERROR(checks_.Word(word));
  return worker_->Enqueue(
      WaitValueOperation{static_cast<uint64_t*>(table_->Behind(word)), value, condition});
}

Status HostStream::LaunchHost(std::function<Status()> function) {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  FERRY_RETURN_IF_ERROR(CheckHostFunction(function));
  return worker_->Enqueue(HostOperation{std::move(function)});
}

Status HostStream::Query() {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  return worker_->Query();
}

Status HostStream::Synchronize() {
  FERRY_RETURN_IF_ERROR(fork_guard_->Check());
  return worker_->Synchronize();
}

LinkRoute HostStream::Route(const void* destination, const void* source) const {
  const PointerInfo to = table_->Identify(destination);
  const PointerInfo from = table_->Identify(source);
  const auto end = [this](const PointerInfo& info) {
    if (info.kind != PointerKind::kDevice) {
      return LinkRoute::kHost;
    }
    // An importer may have fewer devices than the exporter.
    return info.device >= 0 && info.device < link_->device_count() ? info.device : device_;
  };
  const bool pageable = to.kind == PointerKind::kUnknown || from.kind == PointerKind::kUnknown;
  return {end(from), end(to), pageable};
}

}  // namespace ferry::gpu

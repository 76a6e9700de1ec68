#include "daemon/device_rings/rings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/counters.h"
#include "shm/mpsc_ring.h"

namespace ferry::daemon {
namespace {

using shm::Location;
using shm::RingKind;
using shm::RingRequest;
using shm::RingWords;

constexpr uint32_t kRequestBudget = 256;    // of one ring in one turn
constexpr uint64_t kTakeBytes = 512 << 10;  // what these may be about, if they are more than a few
constexpr uint32_t kAtOnce = 32;            // of those, copied together
constexpr size_t kWaitBudget = 64;          // those looked at, of one ring in one turn
constexpr size_t kMostWaiting = 1024;       // of one ring
constexpr uint32_t kMostLooked = 1024;      // slots and operations, of one ring in one report
constexpr uint64_t kHotNs = 200'000;
constexpr uint64_t kShortestSleepNs = 50'000;
constexpr uint64_t kLongestSleepNs = 1'000'000;
constexpr uint64_t kSleepPart = 8;
constexpr uint64_t kForgottenSleepNs = 10'000'000;  // of a ring that has rested for seconds
constexpr uint64_t kForgottenPart = 1000;

// The memory of the rank there, if it is all its own and CPUs reach it.
template <typename T>
T* MemoryAt(progress::ServedRank& rank, const Location& where, uint64_t alignment = alignof(T)) {
  const progress::ServedRegion* const found = rank.FindRegion(where, sizeof(T));
  if (found == nullptr || where.address % alignment != 0 || found->memory.base == nullptr) {
    return nullptr;
  }
  return reinterpret_cast<T*>(found->memory.base + where.address);
}

// The error of a failed counter, into which the rank may write anything.
ErrorCode ErrorOf(const shm::Counter& counter) {
  const auto error = static_cast<int32_t>(counter.error());
  return error > 0 && error < 1 << shm::kRingStatusBits ? static_cast<ErrorCode>(error)
                                                        : ErrorCode::kCorrupt;
}

bool IsReservedZero(const RingRequest& request) {
  return request.flags == 0 && request.reserved[0] == 0 && request.reserved[1] == 0;
}

}  // namespace

Rings::Ring::Ring(const Rings& rings, uint64_t its_number, progress::ServedRank& its_rank,
                  RingWords& its_words, const Place& place)
    : number(its_number),
      rank(&its_rank),
      words(&its_words),
      memory(place.memory),
      slots(reinterpret_cast<const shm::MpscSlot*>(memory.base + place.offset +
                                                   sizeof(shm::MpscRingLayout))),
      capacity(place.capacity),
      consumer(reinterpret_cast<shm::MpscRingLayout*>(memory.base + place.offset), place.capacity),
      operations(rings.one_sided_, its_rank, its_number, rings.timeout_ns_,
                 [this](const RingOperations::Ended& ended) {
                   Finish(*this, ended.completion, ended.ticket, ended.kind,
                          {ended.error, ended.value, false});
                 }) {}

Rings::Rings(Pairs& pairs, progress::RingCalls& one_sided, uint64_t timeout_ns)
    : pairs_(pairs), one_sided_(one_sided), timeout_ns_(timeout_ns) {
  one_sided.on_ring_end = [this](progress::ServedRank&, const progress::RingToken& token,
                                 ErrorCode error,
                                 uint64_t value) { OnOperationEnd(token, error, value); };
}

Rings::~Rings() { one_sided_.on_ring_end = nullptr; }

// ---- Coming and going ---------------------------------------------------------------------------

Rings::Ring* Rings::Find(const RingWords& words) {
  const auto found = std::find_if(rings_.begin(), rings_.end(),
                                  [&](const auto& ring) { return ring->words == &words; });
  return found == rings_.end() ? nullptr : found->get();
}

uint32_t Rings::Look(progress::ServedRank& rank, uint64_t now_ns) {
  shm::SessionLayout* const layout = rank.session->layout();
  const uint64_t changes = shm::LoadAcquire(layout->rings_changed);
  const auto seen = changes_seen_.find(&rank);
  if (rank.ended || changes == (seen == changes_seen_.end() ? 0 : seen->second)) {
    return 0;
  }
  changes_seen_[&rank] = changes;
  for (RingWords& words : layout->rings) {
    // Pairs with the rank's store of it: the other words are there.
    const uint32_t life = shm::LoadAcquire(words.life);
    Ring* const ring = Find(words);
    if (life == (ring != nullptr ? ring->life : shm::LoadRelaxed(words.life_seen))) {
      continue;
    }
    if (ring != nullptr) {
      ring->closes_to = life;
      // A ring that is made again, without waiting for its end, takes no more requests before that.
      ring->closing_left = life % 2 == 0 ? ring->capacity : 0;
      continue;
    }
    if (life % 2 != 0) {
      Open(rank, words, life, now_ns);
    } else {
      shm::StoreRelease(words.life_seen, life);  // Pairs with the rank, which waits for it.
    }
  }
  return 1;
}

void Rings::Open(progress::ServedRank& rank, RingWords& words, uint32_t life, uint64_t now_ns) {
  const uint32_t capacity = shm::LoadRelaxed(words.capacity);
  const Location where{shm::LoadRelaxed(words.region), 0, shm::LoadRelaxed(words.offset)};
  ErrorCode error = ErrorCode::kOk;
  progress::ServedRegion* region = nullptr;
  if (!std::has_single_bit(capacity) || capacity < 2 || capacity > shm::kMaxRingSlots) {
    error = ErrorCode::kInvalidArgument;
  } else {
    region = rank.FindRegion(where, shm::MpscRing::SizeBytes(capacity));
    error = region == nullptr || region->memory.base == nullptr ||
                    where.address % alignof(shm::MpscRingLayout) != 0
                ? ErrorCode::kInvalidBuffer
                : ErrorCode::kOk;
  }
  if (error == ErrorCode::kOk) {
    auto ring = std::make_unique<Ring>(*this, ++last_number_, rank, words,
                                       Ring::Place{region->memory, where.address, capacity});
    ring->life = life;
    ring->used_ns = now_ns;
    rings_.push_back(std::move(ring));
  }
  shm::StoreRelaxed(words.requests, 0);
  shm::StoreRelaxed(words.errors, 0);
  shm::StoreRelaxed(words.error, static_cast<int32_t>(error));
  shm::StoreRelease(words.life_seen, life);  // Pairs with the rank, which waits for it.
}

// Ends a ring whose operations are over, as its rank has asked, and makes its next life.
void Rings::End(Ring& ring, uint64_t now_ns) {
  RingWords& words = *ring.words;
  progress::ServedRank& rank = *ring.rank;
  const uint32_t life = ring.closes_to;
  Close(ring, ErrorCode::kCancelled);
  Erase(ring);
  if (life % 2 != 0) {
    Open(rank, words, life, now_ns);
  } else {
    shm::StoreRelease(words.life_seen, life);  // Pairs with the rank, which waits for it.
  }
}

// Ends a ring. Requests that wait are answered with `error`, too.
void Rings::Close(Ring& ring, ErrorCode error) {
  for (const Waiting& waiting : std::exchange(ring.waiting, {})) {
    Finish(ring, waiting.completion, waiting.ticket, waiting.kind, {error, 0, false});
  }
  one_sided_.ForgetRing(*ring.rank, ring.number);
  ring.operations.EndAll(error);
  ring.consumer.End(error);
}

void Rings::Erase(const Ring& ring) {
  std::erase_if(rings_, [&](const auto& other) { return other.get() == &ring; });
}

void Rings::CloseIn(const progress::ServedRank& rank, const progress::ServedRegion& region) {
  std::erase_if(rings_, [&](const auto& ring) {
    const bool goes = ring->rank == &rank && ring->memory.identity == region.memory.identity;
    if (goes) {
      Close(*ring, ErrorCode::kInvalidBuffer);
    }
    return goes;
  });
  for (const auto& ring : rings_) {
    if (ring->rank == &rank) {
      ring->operations.Advance(now_ns_);  // requests that wait for that memory end, and release it
    }
  }
}

void Rings::CloseOf(const progress::ServedRank& rank, ErrorCode error) {
  std::erase_if(rings_, [&](const auto& ring) {
    const bool goes = ring->rank == &rank;
    if (goes) {
      Close(*ring, error);
    }
    return goes;
  });
  changes_seen_.erase(&rank);
}

// ---- Requests -----------------------------------------------------------------------------------

uint32_t Rings::Advance(uint64_t now_ns) {
  uint32_t done = 0;
  now_ns_ = now_ns;
  for (size_t i = 0; i < rings_.size();) {
    Ring& ring = *rings_[i];
    if (ring.rank->ended) {
      Close(ring, ErrorCode::kCorrupt);
      Erase(ring);
      continue;
    }
    const uint32_t advanced = ring.operations.Advance(now_ns);
    const uint32_t taken = Take(ring);
    const uint32_t handled = advanced + taken + Answer(ring, kWaitBudget);
    if (handled != 0) {
      ring.used_ns = now_ns;
    }
    done += handled;
    Show(ring);
    if (ring.closes_to != 0 && ring.operations.empty() && (taken == 0 || ring.closing_left == 0)) {
      End(ring, now_ns);
      ++done;
      continue;
    }
    ++i;
  }
  return done;
}

uint32_t Rings::Take(Ring& ring) {
  const uint32_t most =
      ring.closes_to != 0 ? std::min(kRequestBudget, ring.closing_left) : kRequestBudget;
  std::array<RingRequest, kAtOnce> requests;
  uint32_t taken = 0;
  for (size_t asked = kAtOnce, came = asked; came == asked && taken < most &&
                                             ring.operations.has_room() &&
                                             ring.operations_bytes < kTakeBytes;) {
    const uint64_t first = ring.consumer.head();
    asked = std::min<size_t>({kAtOnce, most - taken, ring.operations.room()});
    came = ring.consumer.Take({requests.data(), asked});
    for (size_t i = 0; i < came; ++i) {
      Carry(ring, requests[i], first + i);
    }
    taken += static_cast<uint32_t>(came);
  }
  if (taken == 0) {
    return 0;
  }
  if (std::exchange(ring.has_counted, false)) {
    ring.rank->delivery.wake().Publish();  // a thread of the rank may wait for a counter
  }
  if (ring.closes_to != 0) {
    ring.closing_left -= taken;
  }
  shm::StoreRelaxed(ring.words->requests, ring.consumer.head());
  shm::Statistics statistics(ring.rank->session->layout()->counters);
  statistics.AddShared(shm::Statistic::kRingRequests, taken);
  if (const uint32_t operations = std::exchange(ring.operations_taken, 0); operations != 0) {
    statistics.AddShared(shm::Statistic::kOneSidedOperations, operations);
    statistics.AddShared(shm::Statistic::kOneSidedBytes, std::exchange(ring.operations_bytes, 0));
  }
  return taken;
}

void Rings::Carry(Ring& ring, const RingRequest& request, uint64_t ticket) {
  shm::RingCompletion* answer = nullptr;
  Outcome outcome{ErrorCode::kInvalidBuffer};
  if (request.completion_region != 0) {
    answer = MemoryAt<shm::RingCompletion>(*ring.rank,
                                           {request.completion_region, 0, request.completion});
  }
  if (request.completion_region == 0 || answer != nullptr) {
    const auto kind = static_cast<RingKind>(request.kind);
    if (shm::IsOperation(kind) || kind == RingKind::kFence || kind == RingKind::kSignal) {
      return Operate(ring, request, ticket);
    }
    outcome = Execute(ring, request, ticket);
  }
  if (!outcome.is_later) {
    Finish(ring, answer, ticket, request.kind, outcome);
  }
}

void Rings::Operate(Ring& ring, const RingRequest& request, uint64_t ticket) {
  shm::RingOperation operation;
  std::memcpy(&operation, &request, sizeof(operation));
  ring.operations_taken += shm::IsOperation(static_cast<RingKind>(request.kind)) ? 1 : 0;
  ring.operations_bytes += RingOperations::BytesOf(operation);
  ring.operations.Begin(operation, ticket, now_ns_);
}

// The ring may be gone.
void Rings::OnOperationEnd(const progress::RingToken& token, ErrorCode error, uint64_t value) {
  const auto found = std::find_if(rings_.begin(), rings_.end(),
                                  [&](const auto& ring) { return ring->number == token.ring; });
  if (found != rings_.end()) {
    (*found)->operations.End(token.sequence, error, value);
    (*found)->used_ns = now_ns_;
  }
}

// Shows up to which ticket the ring's operations are over, and counts the failures, of many
// operations at once.
void Rings::Show(Ring& ring) {
  if (const uint64_t over = ring.operations.over(ring.consumer.head());
      over != std::exchange(ring.shown_over, over)) {
    ring.consumer.ShowOver(over, ring.operations.failed());
  }
  if (const uint64_t errors = ring.errors - std::exchange(ring.errors_counted, ring.errors);
      errors != 0) {
    shm::Statistics(ring.rank->session->layout()->counters)
        .AddShared(shm::Statistic::kRingErrors, errors);
  }
}

Rings::Outcome Rings::Execute(Ring& ring, const RingRequest& request, uint64_t ticket) {
  if (!IsReservedZero(request)) {
    return {ErrorCode::kInvalidArgument};
  }
  switch (static_cast<RingKind>(request.kind)) {
    case RingKind::kNop:
      return {ErrorCode::kOk, request.value};
    case RingKind::kCounterAdd:
      return AddToCounter(ring, request);
    case RingKind::kCounterWait:
      return AwaitCounter(ring, request, ticket);
    case RingKind::kStart:
      return Start(ring, request, ticket);
    default:
      return {ErrorCode::kInvalidArgument};
  }
}

Rings::Outcome Rings::AddToCounter(Ring& ring, const RingRequest& request) {
  if (request.value == 0 || request.value >= shm::kCounterFailure) {
    return {ErrorCode::kInvalidArgument};
  }
  auto* const layout =
      MemoryAt<shm::CounterLayout>(*ring.rank, {request.region, 0, request.offset});
  if (layout == nullptr) {
    return {ErrorCode::kInvalidBuffer};
  }
  const uint64_t value =
      shm::FetchAdd(layout->value, request.value, std::memory_order_acq_rel) + request.value;
  if (value >= shm::kCounterFailure) {
    return {ErrorOf(shm::Counter(layout)), value};
  }
  ring.has_counted = true;
  return {ErrorCode::kOk, value};
}

Rings::Outcome Rings::AwaitCounter(Ring& ring, const RingRequest& request, uint64_t ticket) {
  const Location counter{request.region, 0, request.offset};
  if (request.value >= shm::kCounterFailure || request.completion_region == 0) {
    return {ErrorCode::kInvalidArgument};
  }
  if (MemoryAt<shm::CounterLayout>(*ring.rank, counter) == nullptr) {
    return {ErrorCode::kInvalidBuffer};
  }
  return Wait(ring, {counter,
                     request.value,
                     false,
                     {request.completion_region, 0, request.completion},
                     ticket,
                     request.kind});
}

Rings::Outcome Rings::Start(Ring& ring, const RingRequest& request, uint64_t ticket) {
  const Location end{request.region, 0, request.offset};
  if (request.value != 0) {
    return {ErrorCode::kInvalidArgument};
  }
  if (ring.waiting.size() >= kMostWaiting) {
    return {ErrorCode::kLimitExceeded};
  }
  uint64_t start = 0;
  if (const ErrorCode error = pairs_.StartByRing(*ring.rank, end, &start);
      error != ErrorCode::kOk) {
    return {error};
  }
  const Location done{end.region, 0, end.address + offsetof(shm::PairLayout, done)};
  return Wait(ring, {done,
                     start,
                     true,
                     {request.completion_region, 0, request.completion},
                     ticket,
                     request.kind});
}

Rings::Outcome Rings::Wait(Ring& ring, Waiting waiting) const {
  if (ring.waiting.size() >= kMostWaiting) {
    return {ErrorCode::kLimitExceeded};
  }
  waiting.since_ns = now_ns_;
  ring.waiting.push_back(waiting);
  return {ErrorCode::kOk, 0, true};
}

// Looks at up to `most` of those that wait, in turn.
uint32_t Rings::Answer(Ring& ring, size_t most) {
  uint32_t answered = 0;
  for (size_t looks = std::min(most, ring.waiting.size()); looks != 0; --looks) {
    if (ring.next_waiting >= ring.waiting.size()) {
      ring.next_waiting = 0;
    }
    const Waiting waiting = ring.waiting[ring.next_waiting];
    auto* const layout = MemoryAt<shm::CounterLayout>(*ring.rank, waiting.counter);
    Outcome outcome{ErrorCode::kInvalidBuffer};  // its region has gone
    if (layout != nullptr) {
      const shm::Counter counter(layout);
      const uint64_t value = counter.Value();
      if (value < waiting.threshold) {
        ++ring.next_waiting;
        continue;
      }
      // A failure does not undo what is complete.
      const bool failed =
          value >= shm::kCounterFailure && value - shm::kCounterFailure < waiting.threshold;
      outcome =
          failed ? Outcome{ErrorOf(counter)}
                 : Outcome{ErrorCode::kOk, waiting.answers_threshold ? waiting.threshold : value};
    }
    ring.waiting[ring.next_waiting] = ring.waiting.back();
    ring.waiting.pop_back();
    Finish(ring, waiting.completion, waiting.ticket, waiting.kind, outcome);
    ++answered;
  }
  return answered;
}

void Rings::Finish(Ring& ring, const Location& completion, uint64_t ticket, uint32_t kind,
                   const Outcome& outcome) {
  auto* const answer =
      completion.region == 0 ? nullptr : MemoryAt<shm::RingCompletion>(*ring.rank, completion);
  Finish(ring, answer, ticket, kind, outcome);
}

void Rings::Finish(Ring& ring, shm::RingCompletion* answer, uint64_t ticket, uint32_t kind,
                   const Outcome& outcome) {
  if (outcome.error != ErrorCode::kOk) {
    if (ring.errors++ == 0) {
      shm::StoreRelaxed(ring.words->first_ticket, ticket);
      shm::StoreRelaxed(ring.words->first_kind, kind);
      shm::StoreRelaxed(ring.words->first_error, static_cast<int32_t>(outcome.error));
    }
    shm::StoreRelease(ring.words->errors, ring.errors);  // Pairs with ferry_ring_state.
  }
  if (answer != nullptr) {
    shm::RingConsumer::Answer(answer, ticket, outcome.value, outcome.error);
  }
}

// ---- Reports ------------------------------------------------------------------------------------

bool Rings::Ring::IsWritten(uint64_t ticket) const {
  // Pairs with the producers' publication; nothing behind it is read.
  return shm::LoadAcquire(slots[ticket & (capacity - 1)].number) == ticket + 1;
}

void Rings::ReportWaiting(const Ring& ring, RingWaits* waits) {
  for (const Waiting& waiting : ring.waiting) {
    auto* const layout = MemoryAt<shm::CounterLayout>(*ring.rank, waiting.counter);
    const uint64_t value = layout == nullptr ? UINT64_MAX : shm::Counter(layout).Value();
    if (value >= waiting.threshold) {
      continue;  // its answer comes in this turn or the next
    }
    RingWait wait;
    wait.kind = static_cast<RingKind>(waiting.kind);
    wait.step = wait.kind == RingKind::kStart ? RingWait::Step::kStart : RingWait::Step::kCounter;
    wait.number = waiting.ticket + 1;
    wait.since_ns = waiting.since_ns;
    wait.counter = waiting.counter;
    wait.value = value;
    wait.threshold = waiting.threshold;
    waits->Add(wait);
  }
}

// A thread writes its slot at once, unless it does not run. So it counts only if two looks have
// found the same.
void Rings::ReportUnwritten(Ring& ring, uint64_t now_ns, RingWaits* waits) {
  const uint64_t head = ring.consumer.head();
  bool is_behind = false;
  for (uint64_t i = 1; i < std::min(ring.capacity, kMostLooked) && !is_behind; ++i) {
    is_behind = ring.IsWritten(head + i);
  }
  if (!is_behind || ring.IsWritten(head)) {
    ring.unwritten = UINT64_MAX;
    return;
  }
  if (std::exchange(ring.unwritten, head) != head) {
    ring.unwritten_since_ns = now_ns;
    return;
  }
  RingWait wait;
  wait.step = RingWait::Step::kUnwritten;
  wait.number = head + 1;
  wait.since_ns = ring.unwritten_since_ns;
  waits->Add(wait);
}

std::vector<RingReport> Rings::Inspect(const progress::ServedRank& rank, uint64_t now_ns) {
  std::vector<RingReport> reports;
  for (const auto& ring : rings_) {
    if (ring->rank != &rank) {
      continue;
    }
    RingWaits waits;
    RingReport report;
    report.is_partial = ring->operations.Report(kMostLooked, &waits);
    ReportWaiting(*ring, &waits);
    ReportUnwritten(*ring, now_ns, &waits);
    report.place = static_cast<uint32_t>(ring->words - rank.session->layout()->rings);
    report.slots = ring->capacity;
    const uint64_t head = ring->consumer.head();
    report.is_full = !ring->operations.has_room() && ring->IsWritten(head) &&
                     ring->IsWritten(head + ring->capacity - 1);
    report.is_closing = ring->closes_to != 0;
    report.waits = waits.Sorted();
    reports.push_back(std::move(report));
  }
  return reports;
}

// ---- Sleeping -----------------------------------------------------------------------------------

bool Rings::is_hot(uint64_t now_ns) const {
  return std::any_of(rings_.begin(), rings_.end(), [&](const auto& ring) {
    return now_ns - ring->used_ns < kHotNs || ring->operations.is_busy();
  });
}

uint64_t Rings::NextNs(uint64_t now_ns) const {
  uint64_t next = UINT64_MAX;
  for (const auto& ring : rings_) {
    const uint64_t idle = now_ns - std::min(now_ns, ring->used_ns);
    const uint64_t longest = std::clamp(idle / kForgottenPart, kLongestSleepNs, kForgottenSleepNs);
    const uint64_t sleep = std::clamp(idle / kSleepPart, kShortestSleepNs, longest);
    next = std::min(next, now_ns + sleep);
  }
  return next;
}

}  // namespace ferry::daemon

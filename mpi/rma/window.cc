#include "mpi/rma/window.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "mpi/base/connection.h"
#include "mpi/coll/channel.h"
#include "mpi/init/process.h"
#include "mpi/rma/attached.h"
#include "mpi/rma/operation.h"
#include "mpi/rma/private_memory.h"
#include "mpi/rma/waiting.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::mpi {

// ---- Memory that windows allocate ---------------------------------------------------------------

Failure WindowMemory::Allocate(uint64_t size_bytes, uint64_t alignment) {
  const uint64_t room = std::max<uint64_t>(size_bytes, 1) + alignment;
  const StatusOr<void*> block =
      front_end->memory->AllocateMemory(room, client::MemoryKind::kHost, 0);
  auto* begin = static_cast<std::byte*>(block.ok() ? *block : nullptr);
  if (block.ok()) {
    block_ = *block;
  } else {
    const StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-window", room);
    StatusOr<shm::Mapping> mapping =
        fd.ok() ? shm::MapSegment(fd->get(), 0) : StatusOr<shm::Mapping>(fd.status());
    const Status status = !mapping.ok() ? mapping.status()
                                        : front_end->memory->ShareMemory(fd->get(), mapping->base(),
                                                                         mapping->size_bytes());
    if (!status.ok()) {
      return {MPI_ERR_NO_MEM, "no memory for a window of " + std::to_string(size_bytes) +
                                  " bytes: " + status.message()};
    }
    segment_ = std::move(*mapping);
    begin = segment_.base();
  }
  const auto address = reinterpret_cast<uintptr_t>(begin);
  base_ = begin + ((address + alignment - 1) / alignment * alignment - address);
  return {};
}

void WindowMemory::Free() {
  if (block_ != nullptr) {
    (void)front_end->memory->FreeMemory(block_);  // which was allocated
  }
  if (segment_.valid() && front_end->memory->UnshareMemory(segment_.base()).ok()) {
    segment_ = {};
  }
  Leave();
}

void WindowMemory::Leave() {
  (void)segment_.Release();
  block_ = nullptr;
  base_ = nullptr;
}

// ---- Memory that processes expose ---------------------------------------------------------------

bool IsPrivate(const shm::Location& where) {
  return where.region == 0 || (where.region & shm::kSegmentPrivate) != 0;
}

Exposed ExposedAt(uint32_t rank, const shm::Location& where, uint64_t size_bytes) {
  Exposed memory;
  memory.size_bytes = size_bytes;
  memory.location = where;
  if (IsPrivate(where)) {
    memory.reach = Reach::kPrivate;
    memory.place = {rank, where.region, 0};
    memory.location.region = 0;
  } else {
    memory.reach = memory.is_by_stream() ? Reach::kByStream : Reach::kShared;
    memory.place = {rank, client::SegmentOf(where), where.address};
  }
  return memory;
}

Exposure::Exposure(void* base, uint64_t size_bytes, shm::ElementLock& elements)
    : segment_(front_end->peers->Expose(base, size_bytes, &elements)) {}

void Exposure::End() {
  if (segment_ != 0) {
    front_end->peers->Unexpose(std::exchange(segment_, 0));
  }
}

// ---- Hints --------------------------------------------------------------------------------------

namespace {

bool IsTruth(const std::string& value) { return value == "true" || value == "false"; }

bool IsChoiceOfOps(const std::string& value) {
  return value == "same_op" || value == "same_op_no_op";
}

bool IsNumber(const std::string& value) {
  return !value.empty() && value.find_first_not_of("0123456789") == value.npos;
}

bool IsOrdering(const std::string& value) {
  if (value == "none") {
    return true;
  }
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(',', at), value.size());
    const std::string word = value.substr(at, end - at);
    if (word != "rar" && word != "raw" && word != "war" && word != "waw") {
      return false;
    }
    at = end + 1;
  }
  return true;
}

struct Hint {
  const char* key;
  const char* value;  // at first
  bool (*is_possible)(const std::string& value);
};

// MPI 5.0, section 12.2.1, but for that of the kinds of memory, which has no value at first. Ferry
// knows them; none changes what it does, since it promises what the defaults ask for.
constexpr Hint kKnownHints[] = {
    {"no_locks", "false", IsTruth},
    {"accumulate_ordering", "rar,raw,war,waw", IsOrdering},
    {"accumulate_ops", "same_op_no_op", IsChoiceOfOps},
    {"mpi_accumulate_granularity", "0", IsNumber},
    {"same_size", "false", IsTruth},
    {"same_disp_unit", "false", IsTruth},
    {"alloc_shared_noncontig", "false", IsTruth},
};

}  // namespace

std::vector<Info::Entry> Win::hints() const {
  std::lock_guard lock(hints_mutex_);
  return hints_;
}

void Win::TakeHints(const std::vector<Info::Entry>& given) {
  std::lock_guard lock(hints_mutex_);
  for (size_t i = 0; i < std::size(kKnownHints); ++i) {
    for (const Info::Entry& wish : given) {
      if (wish.first == kKnownHints[i].key && kKnownHints[i].is_possible(wish.second)) {
        hints_[i].second = wish.second;
      }
    }
  }
  TakeAssertedKinds(given, ServedMemoryKinds(), &hints_);
}

// ---- Windows ------------------------------------------------------------------------------------

Win::Win(Ref<Comm> comm, int flavor)
    : comm_(std::move(comm)),
      flavor_(flavor),
      targets_(static_cast<size_t>(comm_->size())),
      context_(front_end->one_sided->MakeContext()),
      words_(front_end->one_sided->MakeContext()),
      epochs_(comm_->size()) {
  for (const Hint& hint : kKnownHints) {
    hints_.emplace_back(hint.key, hint.value);
  }
}

Win::~Win() {
  front_end->one_sided->FreeContext(context_);
  front_end->one_sided->FreeContext(words_);
}

bool Win::PredefinedAttribute(int keyval, void** value) {
  switch (keyval) {
    case MPI_WIN_BASE:
      *value = base_;
      return true;
    case MPI_WIN_SIZE:
      *value = &size_attribute_;
      return true;
    case MPI_WIN_DISP_UNIT:
      *value = &disp_unit_attribute_;
      return true;
    case MPI_WIN_CREATE_FLAVOR:
      *value = &flavor_;
      return true;
    case MPI_WIN_MODEL:
      *value = &model_;
      return true;
    default:
      return false;
  }
}

ErrorCode Win::DeathAmong(const std::vector<int>& ranks) const {
  for (const int rank : ranks) {
    if (const ErrorCode state = front_end->peers->PeerState(target(rank).rank);
        state != ErrorCode::kOk) {
      return state;
    }
  }
  return ErrorCode::kOk;
}

// ---- The end of operations ----------------------------------------------------------------------

void Win::AddOperation(Ref<Operation> operation) {
  std::lock_guard lock(operations_mutex_);
  std::erase_if(operations_, [](const Ref<Operation>& other) { return other->is_over(); });
  operations_.push_back(std::move(operation));
  has_operations_.store(true, std::memory_order_relaxed);
}

Failure Win::Quiet() {
  std::list<Ref<Operation>> operations;
  if (has_operations()) {
    std::lock_guard lock(operations_mutex_);
    operations.swap(operations_);
    has_operations_.store(false, std::memory_order_relaxed);
  }
  Failure failure;
  for (const Ref<Operation>& operation : operations) {
    const Failure ended = operation->Finish();  // its request tells its failure
    failure = failure.ok() ? ended : failure;
  }
  client::OneSided& one_sided = *front_end->one_sided;
  const Failure ended = FailureOf(one_sided.Quiet(context_, nullptr));
  failure = failure.ok() ? ended : failure;
  // A process that a word did not reach goes on waiting for it: so failures on words count, too.
  const bool may_have_failed =
      waits_from_ == client::WordWait::From::kNetwork && one_sided.IsQuiet(words_);
  const Failure told = may_have_failed ? FailureOf(one_sided.Quiet(words_, nullptr)) : Failure{};
  return failure.ok() ? told : failure;
}

Failure Win::QuietWith(int target) {
  std::list<Ref<Operation>> operations;
  {
    std::lock_guard lock(operations_mutex_);
    for (auto each = operations_.begin(); each != operations_.end();) {
      const auto next = std::next(each);
      if ((*each)->target() == target) {
        operations.splice(operations.end(), operations_, each);
      }
      each = next;
    }
    has_operations_.store(!operations_.empty(), std::memory_order_relaxed);
  }
  Failure failure;
  for (const Ref<Operation>& operation : operations) {
    const Failure ended = operation->Finish();
    failure = failure.ok() ? ended : failure;
  }
  const ErrorCode error = front_end->one_sided->QuietWith(context_, this->target(target).rank);
  return failure.ok() ? FailureOf(error) : failure;
}

// That of the window's own communicator: so it is as fast as any, and says whom it waits for long.
Failure Win::Barrier(const char* call) {
  Channel& channel = Channel::Of(*comm_);
  channel.Name(call);
  front_end->calls->NoteNumber(channel.call_number());
  channel.Enter();
  collective::Problem problem;
  problem.collective = collective::Collective::kBarrier;
  collective::RunFailure failure;
  channel.Run(&problem, {}, &failure);
  return failure.code == ErrorCode::kOk ? Failure{} : DescribeFailedRun(failure);
}

void Win::StopService() { service_.reset(); }

// Once a process leaves the barrier, no process tells it anything, or asks it for anything, any
// more.
Failure Win::End() {
  const Failure ended = Quiet();
  (void)front_end->one_sided->Quiet(words_, nullptr);  // a process not told has waited for it
  const Failure met = Barrier("MPI_Win_free");
  StopService();
  exposure_.End();
  attached_.reset();
  if (met.ok()) {
    control_memory_.Free();
    data_memory_.Free();
  } else {
    control_memory_.Leave();
    data_memory_.Leave();
  }
  return ended.ok() ? met : ended;
}

}  // namespace ferry::mpi

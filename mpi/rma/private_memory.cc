#include "mpi/rma/private_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/thread.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/init/process.h"
#include "mpi/rma/window.h"
#include "shm/accumulate.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

using Kind = PrivateWish::Kind;

// Tags: what an owner is told, and tells.
constexpr int kWishTag = 0;
constexpr int kRunsTag = 1;
constexpr int kDataTag = 2;
constexpr int kAnswerTag = 3;
constexpr int kFoundTag = 4;

// Of which the program knows nothing.
uint32_t ContextOf(const Win& win) { return win.comm().context(Traffic::kPointToPoint); }

client::Message MessageWith(uint32_t rank, uint32_t context, int tag, const void* data,
                            uint64_t size_bytes) {
  return {.buffer = const_cast<void*>(data),
          .size_bytes = size_bytes,
          .peer = static_cast<int32_t>(rank),
          .tag = tag,
          .context = context};
}

ErrorCode Send(const client::Message& message) {
  client::Completion completion;
  const ErrorCode error = front_end->messages->Send(message, &completion);
  return error == ErrorCode::kOk ? completion.error : error;
}

// Of what another rank's thread sends, or is about to.
ErrorCode Receive(client::Message message) {
  client::Completion completion;
  message.service = client::Service::kServed;
  const ErrorCode error = front_end->messages->Receive(message, &completion);
  return error == ErrorCode::kOk ? completion.error : error;
}

bool Finds(Kind kind) { return kind != Kind::kPut && kind != Kind::kAccumulate; }
uint64_t DataBytes(const PrivateWish& wish) {
  switch (wish.kind) {
    case Kind::kPut:
      return wish.bytes;
    case Kind::kGet:
      return 0;
    case Kind::kCompareSwap:
      return 2 * wish.bytes;
    default:
      return shm::Accumulation::TakesOperands(wish.what) ? wish.bytes : 0;
  }
}

// ---- Where this process changes it --------------------------------------------------------------

// The most that is copied of such memory at once.
constexpr uint64_t kPieceBytes = 256 << 10;

Status Told(ErrorCode error) {
  return error == ErrorCode::kOk ? Status() : front_end->peers->Explain(error);
}

// Memory that this process reaches by copies only.
struct Distant {
  std::byte* by_stream = nullptr;  // null: the kernel copies
  uint32_t rank = 0;               // whose it is
  shm::Location where{};

  Status Fetch(void* to, uint64_t offset, uint64_t bytes) const {
    return by_stream != nullptr ? front_end->memory->Copy(to, by_stream + offset, bytes)
                                : Told(front_end->peers->CopyFromPeer(rank, At(offset), to, bytes));
  }
  Status Store(uint64_t offset, const void* from, uint64_t bytes) const {
    return by_stream != nullptr ? front_end->memory->Copy(by_stream + offset, from, bytes)
                                : Told(front_end->peers->CopyToPeer(rank, At(offset), from, bytes));
  }

 private:
  shm::Location At(uint64_t offset) const {
    return {where.region, where.flags, where.address + offset};
  }
};

// Gaps are left alone.
Status StoreElements(const Distant& memory, const shm::Accumulation& what, uint64_t offset,
                     const std::byte* piece, uint64_t count) {
  if (!what.has_gaps()) {
    return memory.Store(offset, piece, count * what.element_bytes());
  }
  const auto [value, index] = what.stretches();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t element = i * what.element_bytes();
    for (const auto& stretch : {value, index}) {
      if (stretch.size_bytes != 0) {
        const uint64_t at = element + stretch.offset;
        FERRY_RETURN_IF_ERROR(memory.Store(offset + at, piece + at, stretch.size_bytes));
      }
    }
  }
  return {};
}

Status AccumulateByCopies(const Distant& memory, const shm::Accumulation& what,
                          const std::byte* operands, std::byte* found, uint64_t count) {
  const uint64_t size = what.element_bytes();
  std::vector<std::byte> piece(std::min(count * size, kPieceBytes / size * size));
  for (uint64_t done = 0; done < count;) {
    const uint64_t elements = std::min<uint64_t>(count - done, piece.size() / size);
    const uint64_t offset = done * size;
    // Behind the last element's numbers there may be nothing.
    FERRY_RETURN_IF_ERROR(
        memory.Fetch(piece.data(), offset, elements * size - what.end_gap_bytes()));
    what.ApplyAlone(piece.data(), operands == nullptr ? nullptr : operands + offset,
                    found == nullptr ? nullptr : found + offset, elements);
    if (what.takes_operands()) {
      FERRY_RETURN_IF_ERROR(StoreElements(memory, what, offset, piece.data(), elements));
    }
    done += elements;
  }
  return {};
}

Status CompareSwapByCopies(const Distant& memory, const std::byte* data, std::byte* found,
                           uint64_t bytes) {
  FERRY_RETURN_IF_ERROR(memory.Fetch(found, 0, bytes));
  return std::memcmp(found, data, bytes) == 0 ? memory.Store(0, data + bytes, bytes) : Status();
}

// `what`: of accumulates.
Status CarryOutByCopies(const Distant& memory, Kind kind, const shm::Accumulation* what,
                        uint64_t bytes, const std::byte* data, std::byte* found) {
  switch (kind) {
    case Kind::kPut:
      return memory.Store(0, data, bytes);
    case Kind::kGet:
      return memory.Fetch(found, 0, bytes);
    case Kind::kCompareSwap:  // of one element
      return CompareSwapByCopies(memory, data, found, bytes);
    default:
      return AccumulateByCopies(memory, *what, data, found, bytes / what->element_bytes());
  }
}

void CarryOutAt(std::byte* at, Kind kind, const shm::Accumulation* what, uint64_t bytes,
                const std::byte* data, std::byte* found) {
  switch (kind) {
    case Kind::kPut:
      shm::CopyWords(at, data, bytes);
      break;
    case Kind::kGet:
      shm::CopyWords(found, at, bytes);
      break;
    case Kind::kCompareSwap:
      shm::CopyWords(found, at, bytes);
      if (std::memcmp(found, data, bytes) == 0) {
        shm::CopyWords(at, data + bytes, bytes);
      }
      break;
    default:
      what->ApplyAlone(at, data, found, bytes / what->element_bytes());
  }
}

// Calls each(offset, bytes, what, data, found) for one piece of a run after the other, until one
// fails, with the lock held if they change elements, for no longer than a piece takes: each element
// changes as a whole, and no more is promised. The arguments are those of CarryOut.
template <typename Each>
Status ForEachRun(shm::ElementLock& elements, const PrivateWish& wish,
                  std::span<const PrivateRun> runs, const std::byte* data, std::byte* found,
                  Each&& each) {
  const bool is_move = wish.kind == Kind::kPut || wish.kind == Kind::kGet;
  std::optional<shm::Accumulation> what;
  if (!is_move && wish.kind != Kind::kCompareSwap) {
    what = shm::Accumulation::Unpack(wish.what);
    if (!what) {
      return {ErrorCode::kInvalidArgument, "another rank wants an operation that there is not"};
    }
  }
  for (const PrivateRun& run : runs) {
    const auto run_bytes = static_cast<uint64_t>(run.length);
    const uint64_t most_bytes =
        what ? kPieceBytes - kPieceBytes % what->element_bytes() : std::max<uint64_t>(run_bytes, 1);
    for (uint64_t done = 0; done < run_bytes; done += most_bytes) {
      const uint64_t bytes = std::min(most_bytes, run_bytes - done);
      std::unique_lock lock(elements, std::defer_lock);
      if (!is_move) {
        lock.lock();
      }
      FERRY_RETURN_IF_ERROR(each(run.offset + static_cast<int64_t>(done), bytes,
                                 what ? &*what : nullptr, data, found));
      data = data == nullptr ? nullptr : data + bytes;
      found = found == nullptr ? nullptr : found + bytes;
    }
  }
  return {};
}

// In this process' own memory; runs count from the window's base.
Failure CarryOutHere(Win& win, const PrivateWish& wish, std::span<const PrivateRun> runs,
                     const std::byte* data, std::byte* found) {
  return FailureOf(ForEachRun(win.own().control.elements(), wish, runs, data, found,
                              [&](int64_t offset, uint64_t bytes, const shm::Accumulation* what,
                                  const std::byte* from, std::byte* to) -> Status {
                                std::byte* const at = win.base() + offset;
                                if (front_end->IsByStream(at)) {
                                  return CarryOutByCopies({.by_stream = at}, wish.kind, what, bytes,
                                                          from, to);
                                }
                                CarryOutAt(at, wish.kind, what, bytes, from, to);
                                return {};
                              }));
}

// Puts and gets of many runs.
Status MoveEach(const WindowTarget& target, const Exposed& memory, bool is_put,
                std::span<const PrivateRun> runs, std::byte* packed) {
  std::vector<ProcessCopy> copies;
  copies.reserve(runs.size());
  for (const PrivateRun& run : runs) {
    const auto bytes = static_cast<uint64_t>(run.length);
    copies.push_back({memory.location.address + static_cast<uint64_t>(run.offset), packed, bytes});
    packed += bytes;
  }
  return Told(is_put ? front_end->peers->CopyEachToPeer(target.rank, copies)
                     : front_end->peers->CopyEachFromPeer(target.rank, copies));
}

// In private memory of a rank of the node. kPermissionDenied, kUnsupported: the kernel denies it,
// and nothing was done.
Status CarryOutInNode(const WindowTarget& target, const Exposed& memory, const PrivateWish& wish,
                      std::span<const PrivateRun> runs, const std::byte* data, std::byte* found) {
  const bool is_put = wish.kind == Kind::kPut;
  std::byte* const packed = is_put ? const_cast<std::byte*>(data) : found;  // read, or written
  if ((is_put || wish.kind == Kind::kGet) && runs.size() > 1 && !front_end->MayBeByStream(packed)) {
    return MoveEach(target, memory, is_put, runs, packed);
  }
  return ForEachRun(target.control.elements(), wish, runs, data, found,
                    [&](int64_t offset, uint64_t bytes, const shm::Accumulation* what,
                        const std::byte* from, std::byte* to) {
                      Distant there{.rank = target.rank, .where = memory.location};
                      there.where.address += static_cast<uint64_t>(offset);
                      return CarryOutByCopies(there, wish.kind, what, bytes, from, to);
                    });
}

// ---- Asking -------------------------------------------------------------------------------------

Failure AskOwner(Win& win, int target, PrivateWish wish, std::span<const PrivateRun> runs,
                 const std::byte* data, std::byte* found) {
  const uint32_t rank = win.target(target).rank;
  wish.run_count = runs.size();
  if (runs.size() == 1) {
    wish.run = runs.front();
  }
  const std::lock_guard lock(win.asking_mutex());
  ErrorCode error = Send(MessageWith(rank, ContextOf(win), kWishTag, &wish, sizeof(wish)));
  if (error == ErrorCode::kOk && runs.size() > 1) {
    error = Send(MessageWith(rank, ContextOf(win), kRunsTag, runs.data(), runs.size_bytes()));
  }
  if (error == ErrorCode::kOk && DataBytes(wish) != 0) {
    error = Send(MessageWith(rank, ContextOf(win), kDataTag, data, DataBytes(wish)));
  }
  int32_t error_class = MPI_SUCCESS;
  if (error == ErrorCode::kOk) {
    error =
        Receive(MessageWith(rank, ContextOf(win), kAnswerTag, &error_class, sizeof(error_class)));
  }
  if (error == ErrorCode::kOk && error_class == MPI_SUCCESS && Finds(wish.kind) &&
      wish.bytes != 0) {
    error = Receive(MessageWith(rank, ContextOf(win), kFoundTag, found, wish.bytes));
  }
  if (error == ErrorCode::kOk && error_class != MPI_SUCCESS) {
    return {error_class, "rank " + std::to_string(target) +
                             " of the window could not carry the operation out in its memory"};
  }
  return FailureOf(error);
}

}  // namespace

Failure CarryOut(Win& win, int target, const Exposed& memory, PrivateWish wish,
                 std::span<PrivateRun> runs, const std::byte* data, std::byte* found) {
  const WindowTarget& owner = win.target(target);
  if (target != win.rank() && owner.is_local && memory.reach == Reach::kPrivate &&
      !memory.is_by_stream() && front_end->peers->IsPrivateMemoryReachable(owner.rank)) {
    const Status done = CarryOutInNode(owner, memory, wish, runs, data, found);
    if (done.code() != ErrorCode::kUnsupported && done.code() != ErrorCode::kPermissionDenied) {
      return FailureOf(done);
    }
  }
  for (PrivateRun& run : runs) {
    run.offset += static_cast<int64_t>(memory.address);
  }
  return target == win.rank() ? CarryOutHere(win, wish, runs, data, found)
                              : AskOwner(win, target, wish, runs, data, found);
}

// ---- The thread ---------------------------------------------------------------------------------

namespace {

constexpr std::chrono::microseconds kShortestRest(5);
constexpr std::chrono::microseconds kLongestRest(1000);

// For programs that leave windows behind.
void StopAtLeave() {
  static const bool once = [] {
    Process::AtLeave([] {
      wins.ForEach([](MPI_Win, Win* win) { win->StopService(); });
      return Failure{};
    });
    return true;
  }();
  (void)once;
}

}  // namespace

PrivateService::PrivateService(Win& win) : win_(win) {
  StopAtLeave();
  Threads::AllowForGood();
  for (int rank = 0; rank < win.size(); ++rank) {
    if (rank != win.rank()) {
      askers_.push_back({.rank = rank, .in_job = win.target(rank).rank, .handle = 0, .wish = {}});
    }
  }
  thread_ = std::thread([this] { RunThread("MPI window", [this] { Work(); }); });
}

PrivateService::~PrivateService() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  stops_.notify_one();
  thread_.join();
}

ErrorCode PrivateService::Listen(Asker* asker) {
  client::Message message =
      MessageWith(asker->in_job, ContextOf(win_), kWishTag, &asker->wish, sizeof(asker->wish));
  message.service = client::Service::kServes;
  const ErrorCode error = front_end->messages->StartReceive(message, &asker->handle);
  if (error != ErrorCode::kOk) {
    asker->handle = 0;
  }
  return error;
}

// Serves all wishes that have come. Returns true if there were any. A process that is gone wishes
// nothing any more.
bool PrivateService::ServeAll() {
  bool has_served = front_end->peers->Poll();
  for (Asker& asker : askers_) {
    if (asker.handle == 0 || !front_end->messages->IsComplete(asker.handle)) {
      continue;
    }
    client::Completion completion;
    front_end->messages->Wait(std::exchange(asker.handle, 0), &completion);  // it is complete
    has_served = true;
    if (completion.error == ErrorCode::kOk && Serve(asker) == ErrorCode::kOk) {
      (void)Listen(&asker);
    }
  }
  return has_served;
}

void PrivateService::Work() {
  for (Asker& asker : askers_) {
    (void)Listen(&asker);
  }
  std::unique_lock lock(mutex_);
  std::chrono::microseconds rest = kShortestRest;
  while (!stops_.wait_for(lock, rest, [this] { return is_stopping_; }) &&
         front_end->poison() == ErrorCode::kOk) {
    lock.unlock();
    const bool has_served = ServeAll();
    lock.lock();
    rest = has_served ? kShortestRest : std::min(rest * 2, kLongestRest);
  }
  lock.unlock();
  for (Asker& asker : askers_) {
    if (asker.handle != 0) {
      client::Completion completion;
      (void)front_end->messages->Cancel(asker.handle);
      front_end->messages->Wait(asker.handle, &completion);
    }
  }
}

// For what there is no memory, the asker gets an error: the program has not asked for anything, and
// goes on.
ErrorCode PrivateService::Serve(const Asker& asker) {
  const PrivateWish& wish = asker.wish;
  const uint64_t data_bytes = DataBytes(wish);
  const uint64_t found_bytes = Finds(wish.kind) ? wish.bytes : 0;
  const std::unique_ptr<PrivateRun[]> many(
      wish.run_count > 1 ? new (std::nothrow) PrivateRun[wish.run_count] : nullptr);
  const std::unique_ptr<std::byte[]> data(data_bytes != 0 ? new (std::nothrow) std::byte[data_bytes]
                                                          : nullptr);
  const std::unique_ptr<std::byte[]> found(
      found_bytes != 0 ? new (std::nothrow) std::byte[found_bytes] : nullptr);
  const bool has_room = (wish.run_count <= 1 || many != nullptr) &&
                        (data_bytes == 0 || data != nullptr) &&
                        (found_bytes == 0 || found != nullptr);
  // Messages for which there is no room are received all the same, so that their sender gets on.
  const auto take = [&](int tag, void* to, uint64_t bytes) {
    const ErrorCode error = Receive(
        MessageWith(asker.in_job, ContextOf(win_), tag, to, to == nullptr ? uint64_t{0} : bytes));
    return to == nullptr && error == ErrorCode::kTruncated ? ErrorCode::kOk : error;
  };
  ErrorCode error = ErrorCode::kOk;
  if (wish.run_count > 1) {
    error = take(kRunsTag, many.get(), wish.run_count * sizeof(PrivateRun));
  }
  if (error == ErrorCode::kOk && data_bytes != 0) {
    error = take(kDataTag, data.get(), data_bytes);
  }
  if (error != ErrorCode::kOk) {
    return error;
  }
  int32_t error_class = MPI_ERR_NO_MEM;
  if (has_room) {
    const std::span<const PrivateRun> runs =
        wish.run_count > 1 ? std::span<const PrivateRun>(many.get(), wish.run_count)
                           : std::span<const PrivateRun>(&wish.run, wish.run_count);
    try {
      error_class = CarryOutHere(win_, wish, runs, data.get(), found.get()).error_class;
    } catch (const std::bad_alloc&) {
      // As above. An element has changed, or not.
    }
  }
  error = Send(
      MessageWith(asker.in_job, ContextOf(win_), kAnswerTag, &error_class, sizeof(error_class)));
  if (error == ErrorCode::kOk && error_class == MPI_SUCCESS && found_bytes != 0) {
    error = Send(MessageWith(asker.in_job, ContextOf(win_), kFoundTag, found.get(), found_bytes));
  }
  return error;
}

}  // namespace ferry::mpi

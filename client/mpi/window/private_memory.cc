#include "client/mpi/window/private_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "client/mpi/base/connection.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/runtime/process.h"
#include "client/mpi/window/window.h"
#include "shm/accumulate.h"

namespace ferry::mpi {
namespace {

using Kind = PrivateWish::Kind;

// Tags in the two contexts.
constexpr int kWishTag = 0;
constexpr int kRunsTag = 1;
constexpr int kDataTag = 2;
constexpr int kAnswerTag = 3;
constexpr int kFoundTag = 4;

uint32_t WishContext(const Win& win) { return win.comm().context(Traffic::kPointToPoint); }
uint32_t AnswerContext(const Win& win) { return win.comm().context(Traffic::kCollective); }

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
  const ErrorCode error = front_end->Send(message, &completion);
  return error == ErrorCode::kOk ? completion.error : error;
}

// Of what another rank's thread sends, or is about to.
ErrorCode Receive(client::Message message) {
  client::Completion completion;
  message.service = client::Service::kServed;
  const ErrorCode error = front_end->Receive(message, &completion);
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

// ---- In the own memory --------------------------------------------------------------------------

// Of an accumulate, the most that is copied of what only streams reach at once.
constexpr uint64_t kPieceBytes = 256 << 10;

Failure Move(void* to, const void* from, uint64_t bytes, bool by_stream) {
  if (by_stream) {
    return FailureOf(front_end->Copy(to, from, bytes));
  }
  std::memcpy(to, from, bytes);
  return {};
}

// Back to where only streams reach, and gaps are left alone.
Failure CopyBack(const shm::Accumulation& what, std::byte* at, const std::byte* piece,
                 uint64_t count) {
  if (!what.has_gaps()) {
    return Move(at, piece, count * what.element_bytes(), true);
  }
  const auto [value, index] = what.stretches();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t element = i * what.element_bytes();
    for (const auto& stretch : {value, index}) {
      if (stretch.size_bytes != 0) {
        const uint64_t offset = element + stretch.offset;
        FERRY_RETURN_FAILURE(Move(at + offset, piece + offset, stretch.size_bytes, true));
      }
    }
  }
  return {};
}

Failure AccumulateByStream(const shm::Accumulation& what, std::byte* at, const std::byte* operands,
                           std::byte* found, uint64_t count) {
  const uint64_t size = what.element_bytes();
  const auto [value, index] = what.stretches();
  // Behind the last element's numbers there may be nothing.
  const uint64_t end_gap =
      size - std::max(value.offset + value.size_bytes, index.offset + index.size_bytes);
  std::vector<std::byte> piece(std::min(count * size, kPieceBytes / size * size));
  for (uint64_t done = 0; done < count;) {
    const uint64_t elements = std::min<uint64_t>(count - done, piece.size() / size);
    const uint64_t offset = done * size;
    FERRY_RETURN_FAILURE(Move(piece.data(), at + offset, elements * size - end_gap, true));
    what.ApplyAlone(piece.data(), operands == nullptr ? nullptr : operands + offset,
                    found == nullptr ? nullptr : found + offset, elements);
    if (what.takes_operands()) {
      FERRY_RETURN_FAILURE(CopyBack(what, at + offset, piece.data(), elements));
    }
    done += elements;
  }
  return {};
}

Failure Accumulate(const PrivateWish& wish, std::byte* at, const std::byte* operands,
                   std::byte* found, uint64_t bytes) {
  const std::optional<shm::Accumulation> what = shm::Accumulation::Unpack(wish.what);
  if (!what) {
    return {MPI_ERR_INTERN, "another rank wants an operation that there is not"};
  }
  const uint64_t count = bytes / what->element_bytes();
  if (front_end->IsByStream(at)) {
    return AccumulateByStream(*what, at, operands, found, count);
  }
  what->ApplyAlone(at, operands, found, count);
  return {};
}

Failure CompareSwap(std::byte* at, const std::byte* data, std::byte* found, uint64_t bytes) {
  const bool by_stream = front_end->IsByStream(at);
  FERRY_RETURN_FAILURE(Move(found, at, bytes, by_stream));
  return std::memcmp(found, data, bytes) == 0 ? Move(at, data + bytes, bytes, by_stream)
                                              : Failure{};
}

}  // namespace

Failure CarryOut(Win& win, const PrivateWish& wish, std::span<const PrivateRun> runs,
                 const std::byte* data, std::byte* found) {
  auto* const base = win.base();
  const bool is_atomic = wish.kind != Kind::kPut && wish.kind != Kind::kGet;
  const std::unique_lock lock =
      is_atomic ? std::unique_lock(win.private_mutex()) : std::unique_lock<std::mutex>();
  for (const PrivateRun& run : runs) {
    std::byte* const at = base + run.offset;
    const auto bytes = static_cast<uint64_t>(run.length);
    if (wish.kind == Kind::kPut) {
      std::memcpy(at, data, bytes);
    } else if (wish.kind == Kind::kGet) {
      std::memcpy(found, at, bytes);
    } else if (wish.kind == Kind::kCompareSwap) {
      return CompareSwap(at, data, found, bytes);  // of one element
    } else {
      FERRY_RETURN_FAILURE(Accumulate(wish, at, data, found, bytes));
    }
    data = data == nullptr ? nullptr : data + bytes;
    found = found == nullptr ? nullptr : found + bytes;
  }
  return {};
}

Failure AskOwner(Win& win, int target, PrivateWish wish, std::span<const PrivateRun> runs,
                 const std::byte* data, std::byte* found) {
  const uint32_t rank = win.target(target).rank;
  wish.run_count = runs.size();
  if (runs.size() == 1) {
    wish.run = runs.front();
  }
  const std::lock_guard lock(win.asking_mutex());
  ErrorCode error = Send(MessageWith(rank, WishContext(win), kWishTag, &wish, sizeof(wish)));
  if (error == ErrorCode::kOk && runs.size() > 1) {
    error = Send(MessageWith(rank, WishContext(win), kRunsTag, runs.data(), runs.size_bytes()));
  }
  if (error == ErrorCode::kOk && DataBytes(wish) != 0) {
    error = Send(MessageWith(rank, WishContext(win), kDataTag, data, DataBytes(wish)));
  }
  int32_t error_class = MPI_SUCCESS;
  if (error == ErrorCode::kOk) {
    error = Receive(
        MessageWith(rank, AnswerContext(win), kAnswerTag, &error_class, sizeof(error_class)));
  }
  if (error == ErrorCode::kOk && error_class == MPI_SUCCESS && Finds(wish.kind) &&
      wish.bytes != 0) {
    error = Receive(MessageWith(rank, AnswerContext(win), kFoundTag, found, wish.bytes));
  }
  if (error == ErrorCode::kOk && error_class != MPI_SUCCESS) {
    return {error_class, "rank " + std::to_string(target) +
                             " of the window could not carry the operation out in its memory"};
  }
  return FailureOf(error);
}

// ---- The thread ---------------------------------------------------------------------------------

namespace {

constexpr std::chrono::microseconds kShortestRest(5);
constexpr std::chrono::microseconds kLongestRest(1000);

}  // namespace

namespace {

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
  thread_ = std::thread([this] { Work(); });
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
      MessageWith(asker->in_job, WishContext(win_), kWishTag, &asker->wish, sizeof(asker->wish));
  message.service = client::Service::kServes;
  const ErrorCode error = front_end->StartReceive(message, &asker->handle);
  if (error != ErrorCode::kOk) {
    asker->handle = 0;
  }
  return error;
}

// Whether there was something to do. Whoever is gone asks for nothing any more.
bool PrivateService::ServeAll() {
  bool has_served = front_end->Poll();
  for (Asker& asker : askers_) {
    if (asker.handle == 0 || !front_end->IsComplete(asker.handle)) {
      continue;
    }
    client::Completion completion;
    front_end->Wait(std::exchange(asker.handle, 0), &completion);  // it is complete
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
      (void)front_end->Cancel(asker.handle);
      front_end->Wait(asker.handle, &completion);
    }
  }
}

ErrorCode PrivateService::Serve(const Asker& asker) {
  const PrivateWish& wish = asker.wish;
  std::vector<PrivateRun> runs(wish.run_count, wish.run);
  if (wish.run_count > 1) {
    const ErrorCode error = Receive(MessageWith(asker.in_job, WishContext(win_), kRunsTag,
                                                runs.data(), runs.size() * sizeof(PrivateRun)));
    if (error != ErrorCode::kOk) {
      return error;
    }
  }
  const uint64_t data_bytes = DataBytes(wish);
  const std::unique_ptr<std::byte[]> data(data_bytes == 0 ? nullptr : new std::byte[data_bytes]);
  if (data_bytes != 0) {
    const ErrorCode error =
        Receive(MessageWith(asker.in_job, WishContext(win_), kDataTag, data.get(), data_bytes));
    if (error != ErrorCode::kOk) {
      return error;
    }
  }
  const uint64_t found_bytes = Finds(wish.kind) ? wish.bytes : 0;
  const std::unique_ptr<std::byte[]> found(found_bytes == 0 ? nullptr : new std::byte[found_bytes]);
  const int32_t error_class = CarryOut(win_, wish, runs, data.get(), found.get()).error_class;
  ErrorCode error = Send(MessageWith(asker.in_job, AnswerContext(win_), kAnswerTag, &error_class,
                                     sizeof(error_class)));
  if (error == ErrorCode::kOk && found_bytes != 0) {
    error =
        Send(MessageWith(asker.in_job, AnswerContext(win_), kFoundTag, found.get(), found_bytes));
  }
  return error;
}

}  // namespace ferry::mpi

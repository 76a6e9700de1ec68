#include "gpu_backends/driver/driver_stream.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "common/sleep.h"
#include "shm/atomic.h"
#include "shm/layout/pair_layout.h"
#include "shm/wait_policy.h"
#include "shm/word_copy.h"

namespace ferry::gpu {
namespace {

// Asks query() for a while, until it says anything but kWouldBlock.
template <typename Query>
Status AwaitShortly(Query&& query) {
  shm::Waiter waiter{shm::WaitPolicy{}};
  Status status = query();
  while (status.code() == ErrorCode::kWouldBlock && !waiter.Idle()) {
    status = query();
  }
  return status;
}

// Waits as AwaitShortly does, for as long as it takes. Vendors' own waits cannot be ended when the
// awaited stream is abandoned.
template <typename Query>
Status Await(Query&& query) {
  Status status = AwaitShortly(query);
  for (GrowingSleep sleep; status.code() == ErrorCode::kWouldBlock;) {
    std::this_thread::sleep_for(sleep.Next());
    status = query();
  }
  return status;
}

struct StepOnHost {
  std::function<bool()> run;
};

bool TakeStep(void* argument) {
  const std::unique_ptr<StepOnHost> step(static_cast<StepOnHost*>(argument));
  return step->run();
}

}  // namespace

// ---- Events ----

DriverEvent::~DriverEvent() {
  if (around_.fork_guard.InChild()) {
    (void)body_.release();
  }
}

Status DriverEvent::Query() {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  const std::shared_ptr<Point> point = Current();
  return point == nullptr ? Status() : point->Query();
}

Status DriverEvent::Synchronize() {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  const std::shared_ptr<Point> point = Current();
  return point == nullptr ? Status() : Await([&] { return point->Query(); });
}

std::shared_ptr<Point> DriverEvent::Current() {
  std::lock_guard lock(body_->mutex);
  return body_->point;
}

void DriverEvent::SetCurrent(std::shared_ptr<Point> point) {
  std::lock_guard lock(body_->mutex);
  body_->point.swap(point);
}

// ---- Streams ----

DriverStream::DriverStream(const StreamSurroundings& around, int device, NativeStream native,
                           bool adopted)
    : around_(around), adopted_(adopted), body_(std::make_unique<Body>(around, device, native)) {
  around_.parked.Watch(body_->state);
}

DriverStream::~DriverStream() {
  if (around_.fork_guard.InChild()) {
    (void)body_.release();
    return;
  }
  state().Close();
  body_->helper->Stop();
  bool finished = Finish();
  if (body_->kernels->in_use()) {
    if (!finished) {
      state().CancelRest();
    }
    Abandon();
    finished = Finish();
  }
  state().JoinStep();
  if (finished) {
    state().Drained();
    around_.driver->DestroyStream(state().device(), state().native());
    return;
  }
  state().CancelRest();
  if (!adopted_) {  // else the application may destroy it at any time, and does so itself
    around_.parked.Park(body_->state);
  }
}

bool DriverStream::Finish() {
  const Status status = Await([this] {
    Status native = around_.driver->QueryStream(state().device(), state().native());
    return native.code() == ErrorCode::kWouldBlock && state().MayBeBlocked()
               ? Status(ErrorCode::kCancelled, "it waits for what has not come")
               : native;
  });
  return status.code() != ErrorCode::kCancelled;
}

// Without this a kernel that waits would keep its part of the device busy for ever. Operations
// behind it then run, so their events have been told before that those do not count.
void DriverStream::Abandon() {
  state().Abandon();
  body_->kernels->Abandon();
}

template <typename Operation>
Status DriverStream::Enqueue(Operation&& operation) {
  std::lock_guard lock(body_->order);
  FERRY_RETURN_IF_ERROR(state().Failure());
  Status status = operation(state().NextPlace());
  state().Advance();
  return status;
}

Status DriverStream::CopyAsync(void* destination, const void* source, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  if (size_bytes == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(around_.checks.Copy(destination, source, size_bytes, "CopyAsync"));
  const StatusOr<bool> is_ordinary = IsOrdinary(destination, source);
  FERRY_RETURN_IF_ERROR(is_ordinary.status());
  if (*is_ordinary) {
    return Enqueue([&](uint64_t place) {
      return HostFunction(place, [destination, source, size_bytes] {
        shm::CopyWords(destination, source, size_bytes);
        return Status();
      });
    });
  }
  return Enqueue([&](uint64_t) { return Copy(destination, source, size_bytes); });
}

Status DriverStream::CopyDeviceAsync(void* destination, const void* source, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  if (size_bytes == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(around_.checks.Copy(destination, source, size_bytes, "CopyDeviceAsync"));
  return Enqueue([&](uint64_t) { return Copy(destination, source, size_bytes); });
}

// Vendors copy ordinary memory at once, or wait for the stream, which may itself wait for something
// that comes after this call. Between two places on the host a step of the stream makes the copy.
StatusOr<bool> DriverStream::IsOrdinary(const void* destination, const void* source) const {
  bool is_ordinary = false;
  for (const void* end : {destination, source}) {
    PointerInfo info = around_.table.Identify(end);
    if (info.kind == PointerKind::kUnknown) {
      info = around_.driver->Identify(end);
      FERRY_RETURN_IF_ERROR(info.failure);
    }
    if (info.kind == PointerKind::kDevice || info.kind == PointerKind::kManaged) {
      return false;
    }
    is_ordinary = is_ordinary || info.kind == PointerKind::kUnknown;
  }
  return is_ordinary;
}

// How many of those bytes lie in the mapping around `pointer`; all, if that is none.
StatusOr<uint64_t> DriverStream::BytesOfMapping(const void* pointer, uint64_t size_bytes) const {
  const PointerInfo info = around_.driver->Identify(pointer);
  FERRY_RETURN_IF_ERROR(info.failure);
  if (info.kind != PointerKind::kDevice) {
    return size_bytes;
  }
  const StatusOr<MemoryPiece> piece = PieceOrWhole(*around_.driver, pointer, info);
  FERRY_RETURN_IF_ERROR(piece.status());
  const auto left = static_cast<uint64_t>(piece->end - static_cast<const std::byte*>(pointer));
  return piece->is_mapping ? std::min(size_bytes, left) : size_bytes;
}

// Copies in one piece, unless the host memory is only partly registered, or the driver refuses a
// copy across mappings, as the first releases of ROCm 6 do.
Status DriverStream::Copy(void* destination, const void* source, uint64_t size_bytes) {
  auto* to = static_cast<std::byte*>(destination);
  auto* from = static_cast<const std::byte*>(source);
  const auto copy = [&](uint64_t piece) {
    return around_.driver->Copy(state().device(), state().native(), to, from, piece);
  };
  while (size_bytes > 0) {
    uint64_t piece = around_.registrations.UniformBytes(to, size_bytes);
    piece = around_.registrations.UniformBytes(from, piece);
    Status copied = copy(piece);
    if (copied.code() == ErrorCode::kInvalidArgument) {
      StatusOr<uint64_t> mapped = BytesOfMapping(to, piece);
      FERRY_RETURN_IF_ERROR(mapped.status());
      mapped = BytesOfMapping(from, *mapped);
      FERRY_RETURN_IF_ERROR(mapped.status());
      copied = *mapped < piece ? copy(*mapped) : copied;
      piece = *mapped;
    }
    FERRY_RETURN_IF_ERROR(copied);
    to += piece;
    from += piece;
    size_bytes -= piece;
  }
  return {};
}

StatusOr<std::shared_ptr<Point>> DriverStream::Record(uint64_t place) {
  const StatusOr<NativeEvent> event = around_.driver->CreateEvent(state().device());
  FERRY_RETURN_IF_ERROR(event.status());
  auto point = std::make_shared<Point>(body_->state, *event, place);
  FERRY_RETURN_IF_ERROR(
      around_.driver->RecordEvent(state().device(), state().native(), point->event()));
  state().AddPoint(point);
  return point;
}

Status DriverStream::RecordEvent(Event* event) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  const StatusOr<DriverEvent*> own = OwnEvent<DriverEvent>(event, "RecordEvent");
  FERRY_RETURN_IF_ERROR(own.status());
  if ((*own)->driver() != around_.driver.get()) {
    return {ErrorCode::kInvalidArgument, "RecordEvent: the event is of another backend"};
  }
  return Enqueue([&](uint64_t place) -> Status {
    StatusOr<std::shared_ptr<Point>> point = Record(place);
    FERRY_RETURN_IF_ERROR(point.status());
    (*own)->SetCurrent(std::move(*point));
    return {};
  });
}

Status DriverStream::WaitEvent(Event* event) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  const StatusOr<DriverEvent*> own = OwnEvent<DriverEvent>(event, "WaitEvent");
  FERRY_RETURN_IF_ERROR(own.status());
  if ((*own)->driver() != around_.driver.get()) {
    return {ErrorCode::kInvalidArgument, "WaitEvent: the event is of another backend"};
  }
  const std::shared_ptr<Point> point = (*own)->Current();
  if (point == nullptr || &point->stream() == &state()) {
    return {};
  }
  return Enqueue([&](uint64_t place) -> Status {
    FERRY_RETURN_IF_ERROR(
        around_.driver->WaitEvent(state().device(), state().native(), point->event()));
    state().AwaitPoint(place, point);
    point->stream().AddWaiter(point, body_->state, place);
    return Mark(place);
  });
}

// Records an event now and then, by which a stream learns of its progress even if it is never
// queried.
Status DriverStream::Mark(uint64_t place) {
  if (!state().NeedsMark()) {
    return {};
  }
  const StatusOr<NativeEvent> event = around_.driver->CreateEvent(state().device());
  FERRY_RETURN_IF_ERROR(event.status());
  Status recorded = around_.driver->RecordEvent(state().device(), state().native(), *event);
  if (recorded.ok()) {
    state().SetMark(*event, place);
  } else {
    around_.driver->DestroyEvent(state().device(), *event);
  }
  return recorded;
}

// ---- Words ----

DriverStream::By DriverStream::WritesBy() {
  if (around_.driver->has_stream_words(state().device())) {
    return By::kDevice;
  }
  return body_->kernels->Prepare().ok() && body_->kernels->write_words() ? By::kKernel : By::kStep;
}

DriverStream::By DriverStream::WaitsBy() {
  if (around_.driver->has_stream_words(state().device())) {
    return By::kDevice;
  }
  if (body_->kernels->Prepare().ok() && body_->kernels->wait_for_words()) {
    return By::kKernel;
  }
  return around_.driver->host_steps_hold() ? By::kStep : By::kNobody;
}

StatusOr<bool> DriverStream::CpusReach(const uint64_t* word, bool must) {
  const PointerInfo known = around_.table.Identify(word);
  if (known.kind == PointerKind::kPinned || known.kind == PointerKind::kManaged) {
    return true;
  }
  if (!must) {
    return false;  // device memory, or known to the vendor only: it does not matter
  }
  if (known.kind == PointerKind::kUnknown) {
    const PointerInfo info = around_.driver->Identify(word);
    FERRY_RETURN_IF_ERROR(info.failure);
    if (info.kind == PointerKind::kPinned) {
      return true;
    }
  }
  return Status(ErrorCode::kInvalidBuffer,
                "streams of " + std::string(around_.driver->name()) +
                    " cannot write to words in device memory here, or wait for them; use pinned or "
                    "registered host memory");
}

Status DriverStream::WriteValue64(uint64_t* word, uint64_t value) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  FERRY_RETURN_IF_ERROR(around_.checks.Word(word));
  return Enqueue([&](uint64_t place) { return Write(place, word, value); });
}

// A word in device memory is one only where the device can also wait for it.
Status DriverStream::Write(uint64_t place, uint64_t* word, uint64_t value) {
  const By waits_by = WaitsBy();
  const bool by_device =
      waits_by == By::kDevice || (waits_by == By::kKernel && KernelsReach(word, sizeof(*word)));
  FERRY_RETURN_IF_ERROR(CpusReach(word, /*must=*/!by_device).status());
  switch (WritesBy()) {
    case By::kDevice:
      return around_.driver->WriteWord(state().device(), state().native(), word, value);
    case By::kKernel:
      return body_->kernels->WriteWord(word, value);
    case By::kStep:
    case By::kNobody:
      break;
  }
  return HostFunction(place, [word, value] {
    shm::StoreRelease(*word, value);  // Pairs with WordMeets, here or in another process.
    return Status();
  });
}

Status DriverStream::WaitValue64(uint64_t* word, uint64_t value, WaitCondition condition) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  FERRY_RETURN_IF_ERROR(around_.checks.Word(word));
  return Enqueue([&](uint64_t place) { return Wait(place, word, value, condition); });
}

Status DriverStream::Wait(uint64_t place, const uint64_t* word, uint64_t value,
                          WaitCondition condition) {
  const By by = WaitsBy();
  const bool by_device =
      by == By::kDevice || (by == By::kKernel && KernelsReach(word, sizeof(*word)));
  const StatusOr<bool> cpus_reach = CpusReach(word, /*must=*/!by_device);
  FERRY_RETURN_IF_ERROR(cpus_reach.status());
  switch (by) {
    case By::kDevice:
      FERRY_RETURN_IF_ERROR(
          around_.driver->WaitWord(state().device(), state().native(), word, value, condition));
      break;
    case By::kKernel:
      FERRY_RETURN_IF_ERROR(body_->kernels->WaitWord(word, value, condition));
      break;
    case By::kStep:
      FERRY_RETURN_IF_ERROR(Step([state = body_->state, place, word, value, condition] {
        // A stream that has failed does not wait: perhaps the word will never be written.
        return !state->FailureBefore(place).ok() || state->WaitForWord(word, value, condition);
      }));
      break;
    case By::kNobody:
      return {ErrorCode::kUnsupported,
              "streams of this device cannot wait for words: its driver has no operation for it, "
              "and kernels do not serve: " +
                  body_->kernels->Prepare().message()};
  }
  state().AwaitWord(place, *cpus_reach ? word : nullptr, value, condition, by == By::kKernel);
  return Mark(place);
}

// ---- Steps on the host ----

Status DriverStream::Step(std::function<bool()> run) {
  auto step = std::make_unique<StepOnHost>(StepOnHost{std::move(run)});
  FERRY_RETURN_IF_ERROR(
      around_.driver->EnqueueHostStep(state().device(), state().native(), TakeStep, step.get()));
  (void)step.release();  // it is the stream's now
  return {};
}

Status DriverStream::HostFunction(uint64_t place, std::function<Status()> function) {
  return Step([state = body_->state, place, function = std::move(function)] {
    state->RunStep(place, function);
    return true;
  });
}

Status DriverStream::LaunchHost(std::function<Status()> function) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  FERRY_RETURN_IF_ERROR(CheckHostFunction(function));
  return Enqueue([&](uint64_t place) { return HostFunction(place, std::move(function)); });
}

// ---- Messages of matched pairs ----

// A buffer may run on into the mappings behind its first one, each of which says where it lies.
bool DriverStream::KernelsReach(const void* pointer, uint64_t size_bytes) const {
  const auto* at = static_cast<const std::byte*>(pointer);
  const std::byte* const end = at + size_bytes;
  do {
    PointerInfo info = around_.table.Identify(at);
    const bool is_own = info.kind != PointerKind::kUnknown;
    if (!is_own) {
      info = around_.driver->Identify(at);
    }
    if (info.kind == PointerKind::kUnknown ||
        (info.kind == PointerKind::kDevice && info.device != body_->state->device())) {
      return false;
    }
    const auto* const base = static_cast<const std::byte*>(info.base);
    MemoryPiece piece{base, base + info.size_bytes};
    if (!is_own && info.kind == PointerKind::kDevice) {
      const StatusOr<MemoryPiece> found = PieceOrWhole(*around_.driver, at, info);
      if (!found.ok()) {
        return false;
      }
      piece = *found;
    }
    if (piece.end <= at || (piece.end < end && !piece.is_mapping)) {
      return false;
    }
    at = piece.end;
  } while (at < end);
  return true;
}

bool DriverStream::KernelsReach(const Reduction& reduction) const {
  for (size_t i = 0; i < reduction.operand_count(); ++i) {
    if (!KernelsReach(reduction.operand(i), reduction.size_bytes())) {
      return false;
    }
  }
  for (size_t i = 0; i < reduction.result_count(); ++i) {
    if (!KernelsReach(reduction.result(i), reduction.size_bytes())) {
      return false;
    }
  }
  return true;
}

bool DriverStream::KernelsMove(const MatchedMove& move) {
  return KernelsReachEnds(move) &&
         (move.size_bytes == 0 || (KernelsReach(move.destination, move.size_bytes) &&
                                   KernelsReach(move.source, move.size_bytes)));
}

bool DriverStream::KernelsReachEnds(const MatchedMove& move) {
  return body_->kernels->Prepare().ok() && body_->kernels->move_messages() &&
         KernelsReach(move.own, sizeof(*move.own)) && KernelsReach(move.other, sizeof(*move.other));
}

Status DriverStream::CopyStrided(const StridedCopy& copy) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  if (copy.block_bytes == 0 || copy.block_count == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(around_.checks.Strided(copy));
  return Enqueue([&](uint64_t) -> Status {
    if (const Status ready = body_->kernels->Prepare(); !ready.ok()) {
      return {ErrorCode::kUnsupported, "CopyStrided: no kernels: " + ready.message()};
    }
    // The checks have found all blocks to be in one allocation, so looking at the first is enough.
    if (!KernelsReach(copy.blocks, copy.block_bytes) ||
        !KernelsReach(copy.packed, copy.size_bytes())) {
      return {ErrorCode::kUnsupported,
              "CopyStrided: the stream's device does not reach the memory"};
    }
    return body_->kernels->CopyStrided(copy);
  });
}

// The checks have found all memory to be the device's, or such as the caller has let it reach.
Status DriverStream::CopySpread(const SpreadCopy& copy) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  if (copy.block_bytes == 0) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(around_.checks.Spread(copy));
  return Enqueue([&](uint64_t) -> Status {
    if (const Status ready = body_->kernels->Prepare(); !ready.ok()) {
      return {ErrorCode::kUnsupported, "CopySpread: no kernels: " + ready.message()};
    }
    return body_->kernels->CopySpread(copy);
  });
}

Status DriverStream::Reduce(const Reduction& reduction) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  FERRY_RETURN_IF_ERROR(around_.checks.Reduce(reduction));
  return Enqueue([&](uint64_t) -> Status {
    if (const Status ready = body_->kernels->Prepare(); !ready.ok()) {
      return {ErrorCode::kUnsupported, "Reduce: no kernels: " + ready.message()};
    }
    if (reduction.count != 0 && !reduction.is_reached && !KernelsReach(reduction)) {
      return {ErrorCode::kUnsupported, "Reduce: the stream's device does not reach the memory"};
    }
    return body_->kernels->Reduce(reduction);
  });
}

Status DriverStream::LaunchMove(const MatchedMove& move) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  FERRY_RETURN_IF_ERROR(around_.checks.LaunchMove(move));
  return Enqueue([&](uint64_t place) -> Status {
    if (KernelsMove(move)) {
      return body_->kernels->LaunchMove(move);
    }
    FERRY_RETURN_IF_ERROR(body_->helper->Start());
    return HostFunction(place, [helper = body_->helper, move] {
      helper->Begin(move);
      return Status();
    });
  });
}

Status DriverStream::AwaitMove(const MatchedMove& move) {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  FERRY_RETURN_IF_ERROR(around_.checks.AwaitMove(move));
  FERRY_RETURN_IF_ERROR(Enqueue([&](uint64_t place) {
    return Wait(place, &move.own->done.value, move.round, WaitCondition::kGreaterOrEqual);
  }));
  if (move.other == nullptr) {
    return {};
  }
  return Enqueue([&](uint64_t place) -> Status {
    if (KernelsReachEnds(move)) {
      return body_->kernels->CloseFailedPair(move);
    }
    return HostFunction(place, [move] {
      CloseFailedPair(move);
      return Status();
    });
  });
}

// ---- Waiting ----

Status DriverStream::Query() {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  return state().Query();
}

// Others may keep the stream busy, so a longer wait waits for a point of its own.
Status DriverStream::Synchronize() {
  FERRY_RETURN_IF_ERROR(around_.fork_guard.Check());
  Status status = AwaitShortly([this] { return state().Query(); });
  if (status.code() != ErrorCode::kWouldBlock) {
    return status;
  }
  std::shared_ptr<Point> point;
  FERRY_RETURN_IF_ERROR(Enqueue([&](uint64_t place) -> Status {
    StatusOr<std::shared_ptr<Point>> recorded = Record(place);
    FERRY_RETURN_IF_ERROR(recorded.status());
    point = std::move(*recorded);
    return {};
  }));
  status = Await([&] {
    Status reached = point->Query();
    if (reached.code() == ErrorCode::kWouldBlock) {
      (void)state().Query();  // fails the points of a stream that never comes to them
    }
    return reached;
  });
  if (status.ok()) {
    state().NotePassed(point->place());
  }
  return status;
}

}  // namespace ferry::gpu

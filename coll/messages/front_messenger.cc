#include "coll/messages/front_messenger.h"

#include <array>
#include <cstdlib>

#include "shm/word_copy.h"

namespace ferry::collective {
namespace {

// Smaller scratch memory is not taken from the rank's heap: its allocator would cost more than it
// saves.
constexpr size_t kLeastHeapScratch = 8192;

// The largest receive that is held, and its ticket.
constexpr size_t kMostHeld = 8192;
constexpr Messenger::Ticket kHeldTicket = UINT64_MAX;

constexpr size_t kAlignment = 64;

// Takes the messages whose receives are refused. It is never read. Receives are held only while one
// thread calls, so no two threads write to it.
std::array<std::byte, kMostHeld> thrown_away;

}  // namespace

void* AllocateAligned(size_t size_bytes) {
  return std::aligned_alloc(kAlignment, (size_bytes + kAlignment) / kAlignment * kAlignment);
}

client::Message FrontMessenger::MessageTo(int peer, uint32_t tag, const void* data,
                                          size_t size_bytes) const {
  return {.buffer = const_cast<void*>(data),
          .size_bytes = size_bytes,
          .peer = WorldRank(peer),
          .tag = static_cast<int32_t>(tag),
          .context = context_};
}

ErrorCode FrontMessenger::StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                                    Ticket* ticket) {
  client::RequestHandle handle = 0;
  const ErrorCode error =
      front_end_->messages->StartSend(MessageTo(peer, tag, data, size_bytes), &handle);
  *ticket = handle == client::kCompletedSend ? 0 : handle;
  return error;
}

ErrorCode FrontMessenger::StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes,
                                       Ticket* ticket, size_t* /*received_bytes*/) {
  const client::Message message = MessageTo(peer, tag, data, size_bytes);
  if (is_patient_ && size_bytes <= kMostHeld && held_.state == Held::State::kNone) {
    held_.state = Held::State::kHeld;
    held_.message = message;
    held_.refused = ErrorCode::kOk;
    *ticket = kHeldTicket;
    return ErrorCode::kOk;
  }
  if (has_held()) {
    PostHeld();  // it is not alone
  }
  return front_end_->messages->StartReceive(message, ticket);
}

FailureText FrontMessenger::TextOf(ErrorCode error) {
  return std::make_shared<const std::string>(front_end_->peers->Explain(error).ToString());
}

void FrontMessenger::SetPatient(bool patient) {
  is_patient_ = patient;
  if (!patient && has_held()) {
    PostHeld();
  }
}

void FrontMessenger::ReceiveHeld(uint64_t end_ns) {
  const ErrorCode error =
      front_end_->messages->ReceiveUntil(held_.message, end_ns, &held_.completion, &held_.handle);
  if (error == ErrorCode::kOk) [[likely]] {
    held_.state = Held::State::kOver;
  } else if (error == ErrorCode::kWouldBlock) {
    held_.state = Held::State::kPosted;
  } else {
    ThrowHeldAway(error);
  }
}

void FrontMessenger::PostHeld() {
  held_.state = Held::State::kPosted;
  if (const ErrorCode error = front_end_->messages->StartReceive(held_.message, &held_.handle);
      error != ErrorCode::kOk) [[unlikely]] {
    ThrowHeldAway(error);
  }
}

// The runner receives a message into nothing if StartReceive refuses it, so that its sender goes on
// and no later receive matches it. For a held one that comes too late: StartReceive has taken it.
// Here all of the message is taken, if that can be: were it cut, libferry would forget for which
// reason it has refused the first receive.
void FrontMessenger::ThrowHeldAway(ErrorCode why) {
  held_.refused = why;
  held_.message.buffer = thrown_away.data();
  ErrorCode error = front_end_->messages->StartReceive(held_.message, &held_.handle);
  if (error != ErrorCode::kOk) {  // such as for want of memory that others reach
    held_.message.size_bytes = 0;
    error = front_end_->messages->StartReceive(held_.message, &held_.handle);
  }
  held_.state = error == ErrorCode::kOk ? Held::State::kPosted : Held::State::kOver;
}

ErrorCode FrontMessenger::TestHeld(size_t* received_bytes) {
  if (held_.state == Held::State::kHeld ||
      (held_.state == Held::State::kPosted &&
       (!front_end_->messages->IsComplete(held_.handle) ||
        !front_end_->messages->Test(held_.handle, &held_.completion)))) {
    return ErrorCode::kWouldBlock;
  }
  held_.state = Held::State::kNone;
  *received_bytes = held_.completion.size_bytes;
  return held_.refused != ErrorCode::kOk ? held_.refused : held_.completion.error;
}

ErrorCode FrontMessenger::Test(Ticket ticket, size_t* received_bytes) {
  if (ticket == kHeldTicket) {
    return TestHeld(received_bytes);
  }
  client::Completion completion;
  if (!front_end_->messages->IsComplete(ticket) ||
      !front_end_->messages->Test(ticket, &completion)) {
    return ErrorCode::kWouldBlock;
  }
  *received_bytes = completion.size_bytes;
  return completion.error;
}

void FrontMessenger::Cancel(Ticket ticket) {
  if (ticket == kHeldTicket && has_held()) {
    PostHeld();
  }
  if (ticket != kHeldTicket || held_.state == Held::State::kPosted) {
    (void)front_end_->messages->Cancel(ticket == kHeldTicket ? held_.handle : ticket);
  }
}

ErrorCode FrontMessenger::Copy(void* to, const void* from, size_t size_bytes) {
  if (!front_end_->IsByStream(to) && !front_end_->IsByStream(from)) [[likely]] {
    shm::CopyWords(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  return front_end_->memory->Copy(to, from, size_bytes).code();
}

void* FrontMessenger::AllocateScratch(size_t size_bytes, int device) {
  if (device != kHostMemory) {
    return nullptr;
  }
  if (size_bytes >= kLeastHeapScratch) {
    if (StatusOr<void*> heap =
            front_end_->memory->AllocateMemory(size_bytes, client::MemoryKind::kHost, 0);
        heap.ok()) {
      heap_scratch_.insert(*heap);
      return *heap;
    }
  }
  return AllocateAligned(size_bytes);
}

void FrontMessenger::FreeScratch(void* scratch) {
  if (heap_scratch_.erase(scratch) == 0) {
    std::free(scratch);
  } else if (front_end_ != nullptr) {  // otherwise the heap is gone
    (void)front_end_->memory->FreeMemory(scratch);
  }
}

}  // namespace ferry::collective

#include "client/mpi/channel/front_messenger.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "client/mpi/base/connection.h"
#include "client/mpi/channel/scratch.h"
#include "client/mpi/comm/rank_set.h"

namespace ferry::mpi {
namespace {

// Smaller scratch memory is not taken from the rank's heap: its allocator would cost more than it
// saves.
constexpr size_t kLeastHeapScratch = 8192;

// The largest receive that is held, and its ticket.
constexpr size_t kMostHeld = 8192;
constexpr Messenger::Ticket kHeldTicket = UINT64_MAX;

int LowestOf(const RankSet& group) {
  int lowest = INT_MAX;
  for (int i = 0; i < group.size(); ++i) {
    lowest = std::min(lowest, group.WorldRank(i));
  }
  return lowest;
}

std::vector<int> From(int first, int count) {
  std::vector<int> peers(static_cast<size_t>(count));
  std::iota(peers.begin(), peers.end(), first);
  return peers;
}

}  // namespace

Sides SidesOf(const Comm& inter) {
  const int own = inter.group().size();
  const int remote = inter.peers().size();
  return LowestOf(inter.peers()) < LowestOf(inter.group())
             ? Sides{.own = From(remote, own), .remote = From(0, remote)}
             : Sides{.own = From(0, own), .remote = From(own, remote)};
}

FrontMessenger::FrontMessenger(const Comm& comm)
    : context_(comm.context(Traffic::kCollective)),
      world_ranks_(comm.group().WorldRanks()),
      self_(comm.rank()) {
  if (!comm.is_inter()) {
    return;
  }
  const Sides sides = SidesOf(comm);
  const std::vector<int> own = std::move(world_ranks_);
  const std::vector<int> remote = comm.peers().WorldRanks();
  world_ranks_.assign(own.size() + remote.size(), -1);
  for (size_t i = 0; i < own.size(); ++i) {
    world_ranks_[static_cast<size_t>(sides.own[i])] = own[i];
  }
  for (size_t i = 0; i < remote.size(); ++i) {
    world_ranks_[static_cast<size_t>(sides.remote[i])] = remote[i];
  }
  self_ = sides.own[static_cast<size_t>(comm.rank())];
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
  const ErrorCode error = front_end->StartSend(MessageTo(peer, tag, data, size_bytes), &handle);
  *ticket = handle == client::kCompletedSend ? 0 : handle;
  return error;
}

ErrorCode FrontMessenger::StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes,
                                       Ticket* ticket, size_t* /*received_bytes*/) {
  const client::Message message = MessageTo(peer, tag, data, size_bytes);
  if (is_patient_ && size_bytes <= kMostHeld && held_.state == Held::State::kNone) {
    held_.state = Held::State::kHeld;
    held_.message = message;
    *ticket = kHeldTicket;
    return ErrorCode::kOk;
  }
  if (has_held()) {
    PostHeld();  // it is not alone
  }
  return front_end->StartReceive(message, ticket);
}

void FrontMessenger::SetPatient(bool patient) {
  is_patient_ = patient;
  if (!patient && has_held()) {
    PostHeld();
  }
}

void FrontMessenger::ReceiveHeld(uint64_t end_ns) {
  const ErrorCode error =
      front_end->ReceiveUntil(held_.message, end_ns, &held_.completion, &held_.handle);
  if (error == ErrorCode::kWouldBlock) {
    held_.state = Held::State::kPosted;
    return;
  }
  if (error != ErrorCode::kOk) {
    held_.completion.error = error;
  }
  held_.state = Held::State::kOver;
}

void FrontMessenger::PostHeld() {
  const ErrorCode error = front_end->StartReceive(held_.message, &held_.handle);
  held_.state = error == ErrorCode::kOk ? Held::State::kPosted : Held::State::kOver;
  held_.completion.error = error;
}

ErrorCode FrontMessenger::TestHeld(size_t* received_bytes) {
  if (held_.state == Held::State::kHeld || (held_.state == Held::State::kPosted &&
                                            (!front_end->IsComplete(held_.handle) ||
                                             !front_end->Test(held_.handle, &held_.completion)))) {
    return ErrorCode::kWouldBlock;
  }
  held_.state = Held::State::kNone;
  *received_bytes = held_.completion.size_bytes;
  return held_.completion.error;
}

ErrorCode FrontMessenger::Test(Ticket ticket, size_t* received_bytes) {
  if (ticket == kHeldTicket) {
    return TestHeld(received_bytes);
  }
  client::Completion completion;
  if (!front_end->IsComplete(ticket) || !front_end->Test(ticket, &completion)) {
    return ErrorCode::kWouldBlock;
  }
  *received_bytes = completion.size_bytes;
  return completion.error;
}

ErrorCode FrontMessenger::Copy(void* to, const void* from, size_t size_bytes) {
  if (size_bytes == 0) {
    return ErrorCode::kOk;  // the buffers may be null
  }
  if (!front_end->IsByStream(to) && !front_end->IsByStream(from)) [[likely]] {
    std::memcpy(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  return front_end->Copy(to, from, size_bytes).code();
}

void* FrontMessenger::AllocateScratch(size_t size_bytes, int device) {
  if (device != kHostMemory) {
    return TakeDeviceScratch(size_bytes, device);
  }
  if (size_bytes >= kLeastHeapScratch) {
    if (StatusOr<void*> heap = front_end->AllocateMemory(size_bytes, client::MemoryKind::kHost, 0);
        heap.ok()) {
      heap_scratch_.insert(*heap);
      return *heap;
    }
  }
  return AllocateAligned(size_bytes);
}

void FrontMessenger::FreeScratch(void* scratch) {
  if (GiveDeviceScratch(scratch)) {
    return;
  }
  if (heap_scratch_.erase(scratch) == 0) {
    std::free(scratch);
  } else if (front_end != nullptr) {  // otherwise the heap is gone
    (void)front_end->FreeMemory(scratch);
  }
}

}  // namespace ferry::mpi

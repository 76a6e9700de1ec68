#include "shmem/base/lives.h"

#include <algorithm>

#include "shm/atomic.h"
#include "shmem/base/job.h"
#include "shmem/base/place_layout.h"

namespace ferry::shmem {
namespace {

uint8_t* RemoteLives() {
  return reinterpret_cast<uint8_t*>(job.region->base() + job.region->place().remote_lives);
}

// Puts one byte to each remote PE. A PE that does not get it is gone, or notices that this PE is
// gone.
void TellRemotePes() {
  client::OneSided& one_sided = *job.front_end->one_sided;
  client::OneSidedContext* const context = one_sided.MakeContext();
  const uint8_t leaving = 1;
  const uint64_t offset = job.region->place().remote_lives + static_cast<uint64_t>(job.self);
  for (int pe = 0; pe < job.size; ++pe) {
    if (!job.IsLocal(pe)) {
      const client::RemoteAddress place{static_cast<uint32_t>(pe),
                                        job.region->numbers()[static_cast<size_t>(pe)], offset};
      (void)one_sided.Put(context, place, &leaving, sizeof(leaving));
    }
  }
  uint32_t ignored = 0;
  (void)one_sided.Quiet(context, &ignored);
  one_sided.FreeContext(context);
}

}  // namespace

bool OpenLives() {
  if (job.has_remote_pes) {
    job.region->place().remote_lives = job.region->AllocateSystem(static_cast<size_t>(job.size));
  }
  return !job.has_remote_pes || job.region->place().remote_lives != 0;
}

void TellLeaving() {
  // Pairs with HasLeft.
  shm::StoreRelease(job.region->place().life, static_cast<uint32_t>(Life::kLeaving));
  for (const int pe : job.local_pes) {  // those that have left wait for this one
    if (pe != job.self && !HasDied(pe)) {
      job.front_end->peers->WakePeer(static_cast<uint32_t>(pe));
    }
  }
  if (job.has_remote_pes) {
    TellRemotePes();
  }
}

bool HasLeft(int pe) {
  // Both pair with TellLeaving.
  if (!job.IsLocal(pe)) {
    return shm::LoadAcquire(RemoteLives()[pe]) != 0;
  }
  return shm::LoadAcquire(job.region->place_of(pe).life) == static_cast<uint32_t>(Life::kLeaving);
}

ErrorCode StateOf(int pe) {
  const ErrorCode state = job.front_end->peers->PeerState(static_cast<uint32_t>(pe));
  return state == ErrorCode::kOk && HasLeft(pe) ? ErrorCode::kNotFound : state;
}

bool HasDied(int pe) {
  const ErrorCode state = job.front_end->peers->PeerState(static_cast<uint32_t>(pe));
  return state != ErrorCode::kOk && state != ErrorCode::kNotFound;
}

int FindNeighbourThatDied() {
  const auto dead = std::find_if(job.local_pes.begin(), job.local_pes.end(),
                                 [](int pe) { return HasDied(pe) && !HasLeft(pe); });
  return dead == job.local_pes.end() ? -1 : *dead;
}

std::string StateText(int pe, ErrorCode state, const std::string* words) {
  const std::string who = "PE " + std::to_string(pe);
  const auto why = [&] {
    return words != nullptr ? *words : job.front_end->peers->Explain(state).ToString();
  };
  switch (state) {
    case ErrorCode::kPeerDied:
      return who + " has died";
    case ErrorCode::kNotFound:
      return who + " does not come: it has called shmem_finalize, or has left the job";
    case ErrorCode::kNodeUnreachable:
      return who + " is gone: the ferryd of its node has died, or cannot be reached";
    case ErrorCode::kInvalidBuffer:
      return "moving data to or from " + who + ": " + why();
    default:
      return "waiting for " + who + ": " + why();
  }
}

}  // namespace ferry::shmem

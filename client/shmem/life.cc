// From shmem_init to shmem_finalize (OpenSHMEM 1.6, section 9.1). See operations.h.
//
// The connection to libferry is made at the first shmem_init and stays until the process ends, so
// that the program may begin again, with another heap. Everything else is made anew.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "client/include/ferry/ferry.h"
#include "client/shmem/active_sets.h"
#include "client/shmem/contexts.h"
#include "client/shmem/fail.h"
#include "client/shmem/heap.h"
#include "client/shmem/job.h"
#include "client/shmem/operations.h"
#include "client/shmem/settings.h"
#include "client/shmem/static_data.h"
#include "client/shmem/team.h"
#include "common/clock.h"
#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/layout/session_layout.h"

namespace ferry::shmem {
namespace {

// How long shmem_finalize waits before it says for whom.
constexpr uint64_t kSilenceNs = 10'000'000'000;

int inits = 0;    // of shmem_init, which shmem_finalize is still to follow
pid_t owner = 0;  // the process that has joined; children that are forked are not PEs
bool has_joined = false;

void EndAtExit(int status, void* /*unused*/);

int FerryLevel(int level) {
  return level == kMultiple     ? FERRY_THREAD_MULTIPLE
         : level == kSerialized ? FERRY_THREAD_SERIALIZED
         : level == kFunneled   ? FERRY_THREAD_FUNNELED
                                : FERRY_THREAD_SINGLE;
}

void Join(const char* call, int level) {
  if (has_joined && owner != getpid()) {
    Fail(call, "this process is a fork of a PE; start PEs with oshrun");
  }
  if (!has_joined && ferry_front_end_join(FerryLevel(level)) != FERRY_SUCCESS) {
    Fail(call, ferry_last_error());
  }
  if (!has_joined) {
    owner = getpid();
    has_joined = true;
    on_exit(EndAtExit, nullptr);
  }
  job.front_end = ferry_front_end(client::kFrontEndVersion);
  if (job.front_end == nullptr) {
    Fail(call, ferry_initialized() != 0
                   ? "libferry and libferry_shmem are not of one release: install both anew"
                   : "the connection of this process has ended, with ferry_finalize");
  }
  if (level == kMultiple) {
    job.front_end->AllowThreads();
  }
  (void)shm::EnableLightFence();  // libferry has done so; this library asks its own
}

void CheckOneNode(const char* call) {
  const client::FrontEnd& front_end = *job.front_end;
  for (uint32_t pe = 1; pe < front_end.size(); ++pe) {
    if (front_end.NodeOf(pe) != front_end.NodeOf(0)) {
      Fail(call,
           "PE " + std::to_string(pe) +
               " is on another node than PE 0: Ferry has OpenSHMEM inside one node so far, so "
               "start all PEs on one (oshrun -n N), or use MPI between nodes");
    }
  }
}

void Require(const char* call, const Status& status) {
  if (!status.ok()) {
    Fail(call, status.message().empty() ? status.ToString() : status.message());
  }
}

void MakeRegion(const char* call) {
  const StatusOr<uint64_t> heap_bytes =
      HeapBytes(job.front_end->options().shmem_heap_bytes, job.size);
  Require(call, heap_bytes.status());
  StatusOr<std::unique_ptr<Region>> made =
      Region::Make(job.front_end, shm::RoundUpToPage(*heap_bytes));
  Require(call, made.status());
  job.region = std::move(*made);
  if (job.self == 0) {
    PlaceLayout& place = job.region->place();
    place.world_board = job.region->AllocateSystem(Assembly::BoardBytes(job.size));
    place.shared_board = job.region->AllocateSystem(Assembly::BoardBytes(job.size));
    if (place.world_board == 0 || place.shared_board == 0) {
      Fail(call, "a job of " + std::to_string(job.size) + " PEs is larger than a node can have");
    }
  }
  Require(call, OfferStatics(job.front_end, &job.region->place()));
  Require(call, job.region->MeetOthers());
  Require(call, MeetStatics());
  job.heap = {"the symmetric heap", job.region->base() + kHeapOffset, job.region->heap_bytes(), {}};
  for (int pe = 0; pe < job.size; ++pe) {
    job.heap.shifts.push_back(job.region->shift_of(pe));
  }
}

void Begin(const char* call, int level) {
  Join(call, level);
  job.self = static_cast<int>(job.front_end->rank());
  job.size = static_cast<int>(job.front_end->size());
  job.thread_level = level;
  CheckOneNode(call);
  MakeRegion(call);
  OpenHeap();
  OpenPredefinedTeams();
  shm::StoreRelease(job.region->place().life, static_cast<uint32_t>(Life::kRunning));
  job.phase.store(Phase::kRunning, std::memory_order_release);
  WorldTeam()->assembly->Sync(call);
}

// Whether PE `pe` has come to the end, or never will.
bool HasCome(int pe) {
  // Pairs with AwaitAll.
  return shm::LoadAcquire(job.region->place_of(pe).life) == static_cast<uint32_t>(Life::kLeaving) ||
         job.front_end->PeerState(static_cast<uint32_t>(pe)) != ErrorCode::kOk;
}

std::string Missing() {
  std::string names;
  for (int pe = 0; pe < job.size; ++pe) {
    if (!HasCome(pe)) {
      names += (names.empty() ? "" : ", ") + std::to_string(pe);
    }
  }
  return names;
}

// The barrier of shmem_finalize. It is none of the world's collectives, so that PEs that still are
// in one of those learn that this one does not come.
void AwaitAll(const char* call) {
  // Pairs with HasCome and AssemblyLink::StateOf.
  shm::StoreRelease(job.region->place().life, static_cast<uint32_t>(Life::kLeaving));
  for (int pe = 0; pe < job.size; ++pe) {
    if (pe != job.self && !HasCome(pe)) {
      job.front_end->WakePeer(static_cast<uint32_t>(pe));
    }
  }
  int next = 0;  // all before it have come
  const auto have_come = [](void* argument) {
    int& pe = *static_cast<int*>(argument);
    while (pe < job.size && HasCome(pe)) {
      ++pe;
    }
    return pe == job.size;
  };
  uint64_t silence_ns = kSilenceNs;
  while (!have_come(&next) && job.front_end->poison() == ErrorCode::kOk) {
    const uint64_t end_ns = MonotonicNs() + silence_ns;
    job.front_end->WaitFor(have_come, &next, client::kAny, end_ns);
    if (next < job.size && MonotonicNs() >= end_ns) {
      Warn(call, "waiting for PE " + Missing() + " to call it, too");
      silence_ns *= 2;
    }
  }
}

// What an inner pair of shmem_init and shmem_finalize does.
void Meet(const char* call) {
  Quiet(call, DefaultContext());
  WorldTeam()->assembly->Sync(call);
}

void End(const char* call) {
  Quiet(call, DefaultContext());
  AwaitAll(call);
  job.phase.store(Phase::kAfter, std::memory_order_release);
  ForgetActiveSets();
  CloseAllTeams();
  ForgetContexts();
  const Status status = job.region->End();
  if (job.front_end->poison() == ErrorCode::kOk) {  // else the region has ended with the daemon
    Require(call, status);
  }
  ForgetStatics();
  job.heap = {};
  job.region.reset();
  job.front_end = nullptr;
}

// A program may leave main without shmem_finalize. One that fails before it does not come to an end
// together with the others: they learn that it has died.
void EndAtExit(int status, void* /*unused*/) {
  if (owner != getpid()) {
    return;
  }
  if (job.is_running()) {
    if (status != 0) {
      return;
    }
    End("the end of the program, without shmem_finalize");
  }
  (void)ferry_front_end_leave();  // nobody is there to be told
}

}  // namespace

int InitThread(const char* call, int requested, int* provided) {
  if (requested < kSingle || requested > kMultiple) {
    Fail(call, "the thread level " + std::to_string(requested) + " is none of SHMEM_THREAD_*");
  }
  if (inits == 0) {
    Begin(call, requested);
  } else {
    Meet(call);
  }
  inits++;
  if (provided != nullptr) {
    *provided = job.thread_level;
  }
  return 0;
}

void Finalize(const char* call) {
  CheckRunning(call);
  if (--inits == 0) {
    End(call);
  } else {
    Meet(call);
  }
}

void GlobalExit(const char* call, int status) {
  CheckRunning(call);
  std::fflush(nullptr);
  ferry_abort(status);
  std::abort();  // ferry_abort does not return
}

int MyPe(const char* call) {
  CheckRunning(call);
  return job.self;
}

int PeCount(const char* call) {
  CheckRunning(call);
  return job.size;
}

int QueryThread(const char* call) {
  CheckRunning(call);
  return job.thread_level;
}

int QueryInitialized() { return job.is_running() ? 1 : 0; }

}  // namespace ferry::shmem

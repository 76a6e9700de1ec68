// From shmem_init to shmem_finalize (OpenSHMEM 1.6, section 9.1). See operations.h.
//
// The connection to libferry is made at the first shmem_init and stays until the process ends, so
// that the program may begin again, with another heap. Everything else is made anew.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/api/calls.h"
#include "client/api/front_end_life.h"
#include "common/clock.h"
#include "common/counted.h"
#include "include/ferry/ferry.h"
#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/layout/session_layout.h"
#include "shm/wait_policy.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"
#include "shmem/base/operations.h"
#include "shmem/base/settings.h"
#include "shmem/base/static_data.h"
#include "shmem/coll/active_sets.h"
#include "shmem/device/devices.h"
#include "shmem/device/queues.h"
#include "shmem/heap/heap.h"
#include "shmem/heap/spaces.h"
#include "shmem/init/announcements.h"
#include "shmem/init/leftovers.h"
#include "shmem/rma/call_comparison.h"
#include "shmem/rma/contexts.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// How long shmem_finalize rests before it looks for PEs that have died.
constexpr uint64_t kLongestRestNs = 5'000'000;

int inits = 0;    // of shmem_init, which shmem_finalize is still to follow
pid_t owner = 0;  // the process that has joined; children that are forked are not PEs
bool has_joined = false;
bool ended_at_exit = false;  // with no shmem_finalize before: one may follow, which is late

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
  ferry_front_end_begin("shmem_init", "shmem_finalize");
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
  shm::SetCrowdedHook(job.front_end->crowded_hook());
  if (level == kMultiple) {
    job.front_end->peers->SetThreads(true);
  }
  (void)shm::EnableLightFence();  // libferry has done so; this library asks its own
}

void Require(const char* call, const Status& status) {
  if (!status.ok()) {
    Fail(call, status.message().empty() ? status.ToString() : status.message());
  }
}

// Returns the size of the heap, on which all PEs agree. The machines of several nodes may differ:
// where the sizes are defaults, the smallest one counts.
uint64_t AgreeOnHeapBytes(const char* call) {
  const StatusOr<HeapSize> own = FindHeapSize(job.front_end->options().shmem_heap_bytes,
                                              static_cast<int>(job.local_pes.size()));
  Require(call, own.status());
  uint64_t bytes = own->bytes;
  if (job.has_remote_pes && own->is_default) {
    std::vector<uint64_t> all(static_cast<size_t>(job.size));
    Require(call, ExchangeByMessages(job.front_end, &bytes, sizeof(bytes), all.data()));
    bytes = *std::min_element(all.begin(), all.end());
  }
  return shm::RoundUpToPage(bytes);
}

// Makes the boards that this PE is the first of; those of an own node's teams only.
bool MakeBoards() {
  PlaceLayout& place = job.region->place();
  const auto make = [](size_t members, uint64_t* offset) {
    *offset = job.region->AllocateSystem(Assembly::BoardBytes(static_cast<int>(members)));
    return *offset != 0;
  };
  return job.self != job.local_pes.front() ||
         (make(job.local_pes.size(), &place.shared_board) &&
          (job.has_remote_pes || make(job.local_pes.size(), &place.world_board)));
}

void MakeRegion(const char* call) {
  StatusOr<std::unique_ptr<Region>> made = Region::Make(job.front_end, AgreeOnHeapBytes(call));
  Require(call, made.status());
  job.region = std::move(*made);
  if (!OpenLives() || !MakeBoards()) {
    Fail(call, "a job of " + Counted(job.size, "PE") + ", " + std::to_string(job.local_pes.size()) +
                   " of them on this node, is too large");
  }
  job.region->set_is_checking(AsksForChecks(job.front_end->options()));
  job.region->set_programs_heap_bytes(ProgramsHeapBytes());
  Require(call, OfferStatics(job.front_end, &job.region->place()));
  Require(call, job.region->MeetOthers());
  job.is_checking = job.region->is_checking();
  Require(call, MeetStatics());
  job.heap = {.name = "the symmetric heap",
              .base = job.region->base() + kHeapOffset,
              .size_bytes = job.region->heap_bytes(),
              .numbers = job.region->numbers(),
              .heap = 0};
  for (int pe = 0; pe < job.size; ++pe) {
    job.heap.shifts.push_back(job.region->shift_of(pe));
    job.heap.first_offsets.push_back(kHeapOffset);
  }
}

void FindLocalPes() {
  job.local_pes.clear();
  for (int pe = 0; pe < job.size; ++pe) {
    if (job.IsLocal(pe)) {
      job.local_pes.push_back(pe);
    }
  }
  job.has_remote_pes = job.local_pes.size() != static_cast<size_t>(job.size);
}

void CheckLevel(const char* call, int level) {
  if (level < kSingle || level > kMultiple) {
    Fail(call, "the thread level " + std::to_string(level) + " is none of SHMEM_THREAD_*");
  }
}

void BeginToJoin(const char* call, int level) {
  CheckLevel(call, level);
  Join(call, level);
  job.self = static_cast<int>(job.front_end->rank());
  job.size = static_cast<int>(job.front_end->size());
  job.thread_level = level;
  FindLocalPes();
  job.deaths_seen.store(0, std::memory_order_relaxed);
  job.death_epoch = &job.front_end->death_epoch();
}

// Blocks until all PEs are here.
void BeginToRun(const char* call) {
  MakeRegion(call);
  OpenHeap(0, kHeapAlignment);
  Announce(job.front_end->options(), job.heap.size_bytes, job.is_checking);
  OpenPredefinedTeams();
  shm::StoreRelease(job.region->place().life, static_cast<uint32_t>(Life::kRunning));
  job.phase.store(Phase::kRunning, std::memory_order_release);
  WorldTeam()->assembly->Sync(call);
  OpenProgramsHeap(call);
  inits = 1;
}

// Returns true if PE `pe` has come to the end, or never will.
bool HasCome(int pe) { return pe == job.self || StateOf(pe) != ErrorCode::kOk; }

std::string Missing() {
  std::string names;
  for (int pe = 0; pe < job.size; ++pe) {
    if (!HasCome(pe)) {
      names += (names.empty() ? "" : ", ") + std::to_string(pe);
    }
  }
  return names;
}

// Returns true if all PEs from *next on have come; moves *next behind those that have.
bool HaveAllCome(void* next) {
  int& pe = *static_cast<int*>(next);
  while (pe < job.size && HasCome(pe)) {
    ++pe;
  }
  return pe == job.size;
}

// Returns once all have come, soon after `end_ns`, or when the connection has ended. Local PEs wake
// this one; data that remote ones put into its memory ends a rest only.
void AwaitUntil(uint64_t end_ns, int* next) {
  if (!job.has_remote_pes) {
    job.front_end->peers->WaitFor(HaveAllCome, next, client::kAny, end_ns);
    return;
  }
  while (!HaveAllCome(next) && job.front_end->poison() == ErrorCode::kOk &&
         MonotonicNs() < end_ns) {
    job.front_end->calls->NoteWait();
    job.front_end->peers->Rest(kLongestRestNs);
  }
}

// The barrier of shmem_finalize. It is none of the world's collectives, so that PEs that still are
// in one of those learn that this one does not come.
void AwaitAll(const char* call) {
  client::NamedCall note(call);
  const client::CallScope scope(job.front_end->calls, &note);
  TellLeaving();
  int next = 0;
  uint64_t silence_ns = job.front_end->options().mpi_warn_after_ms * kNsPerMs;
  while (!HaveAllCome(&next) && job.front_end->poison() == ErrorCode::kOk) {
    const uint64_t end_ns = silence_ns == 0 ? UINT64_MAX : MonotonicNs() + silence_ns;
    job.front_end->calls->NoteMissing(next, 1);
    AwaitUntil(end_ns, &next);
    if (next < job.size && MonotonicNs() >= end_ns) {
      Warn(call, "waiting for PE " + Missing() + " to call it, too");
      silence_ns *= 2;
    }
  }
}

// Carries out an inner pair of shmem_init and shmem_finalize, which is a barrier.
void Meet(const char* call) {
  Quiet(call, DefaultContext());
  CheckCollective(call, *WorldTeam()->assembly, {});
  WorldTeam()->assembly->Sync(call);
}

void End(const char* call) {
  // The calls before this one have told of PEs that have died; those that live can end in order.
  job.deaths_seen.store(Job::kNoDeaths, std::memory_order_relaxed);
  job.death_epoch = &Job::kNoDeaths;
  AwaitQueues(call);
  Quiet(call, DefaultContext());
  CompleteContexts(call);
  if (job.is_checking) {
    WarnOfLeftovers(call);
  }
  CompleteDevices();
  UnmapSpaces();  // before the others hear that this PE has come: then they free theirs
  AwaitAll(call);
  job.phase.store(Phase::kAfter, std::memory_order_release);
  ForgetDevices();
  ForgetActiveSets();
  CloseAllTeams(call);
  ForgetContexts();
  ForgetSpaces();
  const Status status = job.region->End();
  if (job.front_end->poison() == ErrorCode::kOk) {  // else the region has ended with the daemon
    Require(call, status);
  }
  ForgetStatics();
  job.heap = {};
  job.region.reset();
  job.front_end = nullptr;
  ferry_front_end_end();
}

// A program may leave main without shmem_finalize. One that fails before it does not come to an end
// together with the others: they learn that it has died.
void EndAtExit(int status, void* /*unused*/) {
  if (owner != getpid()) {
    return;
  }
  if (job.is_running()) {
    if (status != 0) {
      EndDeviceWatch();
      return;
    }
    End("the end of the program, without shmem_finalize");
    ended_at_exit = true;
  } else if (job.phase.load(std::memory_order_acquire) == Phase::kJoined) {
    // It would wait here for the others, who wait for it in shmemx_heap_postinit.
    Warn("the end of the program", "shmemx_heap_postinit was never called");
    return;
  }
  (void)ferry_front_end_leave();  // there is no caller to tell of a failure
}

}  // namespace

int InitThread(const char* call, int requested, int* provided) {
  if (job.phase.load(std::memory_order_acquire) == Phase::kJoined) {
    Fail(call, "shmemx_heap_preinit was called: shmemx_heap_postinit ends what it has begun");
  }
  if (inits == 0) {
    BeginToJoin(call, requested);
    BeginToRun(call);
  } else {
    CheckLevel(call, requested);
    Meet(call);
    inits++;
  }
  if (provided != nullptr) {
    *provided = job.thread_level;
  }
  return 0;
}

int HeapPreinit(const char* call, int requested, int* provided) {
  const Phase phase = job.phase.load(std::memory_order_acquire);
  if (phase == Phase::kJoined || phase == Phase::kRunning) {
    Fail(call, phase == Phase::kJoined ? "it was called before: shmemx_heap_postinit comes next"
                                       : "OpenSHMEM has begun already: call it in place of "
                                         "shmem_init, and shmemx_heap_postinit after it");
  }
  BeginToJoin(call, requested);
  job.phase.store(Phase::kJoined, std::memory_order_release);
  if (provided != nullptr) {
    *provided = job.thread_level;
  }
  return 0;
}

void HeapPostinit(const char* call) {
  if (job.phase.load(std::memory_order_acquire) != Phase::kJoined) {
    Fail(call, "call shmemx_heap_preinit or shmemx_heap_preinit_thread first");
  }
  BeginToRun(call);
}

void Finalize(const char* call) {
  if (ended_at_exit) {  // called by a handler of atexit that is older than EndAtExit
    return;
  }
  CheckRunning(call);
  if (--inits == 0) {
    End(call);
  } else {
    AwaitQueues(call);
    Meet(call);
  }
}

void GlobalExit(const char* call, int status) {
  CheckJoined(call);
  std::fflush(nullptr);
  ferry_front_end_exit(status);
  std::abort();  // which does not return
}

int MyPe(const char* call) {
  CheckJoined(call);
  return job.self;
}

int PeCount(const char* call) {
  CheckJoined(call);
  return job.size;
}

int QueryThread(const char* call) {
  CheckRunning(call);
  return job.thread_level;
}

int QueryInitialized() { return job.is_running() ? 1 : 0; }

}  // namespace ferry::shmem

// Teams and contexts (OpenSHMEM 1.5, sections 9.4 and 9.5): they say which PE a number stands for.
//
// Objects are never given back to the system, so that a handle that the program uses too late
// stands for a team of no PEs, which calls notice.
//
// Calling thread: see operations.h. Teams and contexts are made and destroyed under one lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "shmem/base/assembly.h"
#include "shmem/base/operations.h"

namespace ferry::shmem {

// The heap of a local PE. A remote PE's entry has no bytes, so no address lies in it; nor has any
// entry while calls are checked (checks.h).
struct LocalHeap {
  ptrdiff_t shift = 0;
  size_t size_bytes = 0;
};

struct Team {
  int size = 0;  // 0: it is no team (any more), or OpenSHMEM is not running
  int self = -1;
  const LocalHeap* heaps = nullptr;  // by PE of the team
  std::vector<int> pes;              // of the world, by PE of the team
  std::vector<LocalHeap> all_heaps;
  TeamConfig config{};
  std::unique_ptr<Assembly> assembly;
  std::vector<Context*> contexts;  // that end with the team
  int private_contexts = 0;

  bool Has(int pe) const { return static_cast<unsigned>(pe) < static_cast<unsigned>(size); }
  bool is_open() const { return assembly != nullptr; }
};

class RemoteContext;

struct Context {
  const Team* team = nullptr;  // of no PEs: it was destroyed
  long options = 0;
  std::atomic<RemoteContext*> remote{nullptr};  // null: it has met no remote PE so far (remote.h)

  bool has_remote() const { return remote.load(std::memory_order_relaxed) != nullptr; }
};

// The team of no PEs, for contexts that were destroyed.
extern const Team& no_team;

// Makes TEAM_WORLD of all PEs, and TEAM_SHARED of the local ones. Their boards, as far as they have
// some, lie where the place of the team's first PE says.
void OpenPredefinedTeams();
// Destroys all teams and contexts.
void CloseAllTeams(const char* call);
// Returns the number of open teams without the predefined ones.
size_t CountOpenTeams();
// Returns the team. Ends the program if `team` is invalid or was destroyed, or OpenSHMEM is not
// running.
Team& CheckTeam(const char* call, Team* team);

}  // namespace ferry::shmem

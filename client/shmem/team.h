// Teams and contexts (OpenSHMEM 1.5, sections 9.4 and 9.5): which PEs a number stands for.
//
// Objects are never given back to the system, so that a handle that the program uses too late
// stands for a team of no PEs, which calls notice.
//
// Calling thread: see operations.h. Teams and contexts are made and destroyed under one lock.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "client/shmem/assembly.h"
#include "client/shmem/operations.h"

namespace ferry::shmem {

struct Team {
  int size = 0;  // 0: it is no team (any more), or OpenSHMEM is not running
  int self = -1;
  const ptrdiff_t* heap_shifts = nullptr;  // by PE of the team
  std::vector<int> pes;                    // of the world, by PE of the team
  std::vector<ptrdiff_t> shifts;
  TeamConfig config{};
  std::unique_ptr<Assembly> assembly;
  std::vector<Context*> contexts;  // that end with the team
  int private_contexts = 0;

  bool Has(int pe) const { return static_cast<unsigned>(pe) < static_cast<unsigned>(size); }
  bool is_open() const { return assembly != nullptr; }
};

struct Context {
  const Team* team = nullptr;  // of no PEs: it was destroyed
  long options = 0;
};

// A team that never has PEs.
extern const Team& no_team;

// Makes TEAM_WORLD and TEAM_SHARED of all PEs; their boards lie where PE 0's place says.
void OpenPredefinedTeams();
// Destroys all teams and contexts.
void CloseAllTeams();
// The team, or the end of the program: `team` is invalid, was destroyed, or OpenSHMEM is not
// running.
Team& CheckTeam(const char* call, Team* team);

}  // namespace ferry::shmem

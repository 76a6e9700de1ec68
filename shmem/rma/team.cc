// Teams. See team.h and operations.h.
#include "shmem/rma/team.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>

#include "shm/atomic.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/message_contexts.h"
#include "shmem/rma/call_comparison.h"
#include "shmem/rma/contexts.h"

namespace ferry::shmem {
namespace {

// These objects are never destroyed, not even at exit: threads of the program may still run.
Team& world_team = *new Team();
Team& shared_team = *new Team();
Context& default_context = *new Context{&world_team};

struct Teams {
  std::mutex mutex;
  std::deque<Team> all;  // but the predefined ones; a handle is the address of one
  std::vector<Team*> free;
  // Boards in this PE's memory that others may still look at.
  struct Board {
    uint64_t offset;
    int members;
  };
  std::vector<Board> retired;
  uint64_t numbers_made = 0;  // by this PE, for teams over several nodes; none is used twice
};
Teams& teams = *new Teams();

void Open(Team* team, std::vector<int> pes, int self, const MeetingPlace& where,
          TeamConfig config) {
  team->all_heaps.clear();
  for (const int pe : pes) {
    const ptrdiff_t shift = job.region->shift_of(pe);
    const bool is_slow = shift == kRemote || job.is_checking;
    team->all_heaps.push_back(is_slow ? LocalHeap{} : LocalHeap{shift, job.heap.size_bytes});
  }
  team->heaps = team->all_heaps.data();
  team->config = config;
  team->assembly = std::make_unique<Assembly>(pes, self, where);
  team->pes = std::move(pes);
  team->self = self;
  team->size = static_cast<int>(team->pes.size());
}

void Close(const char* call, Team* team) {
  DestroyContextsOf(call, team);
  team->size = 0;
  team->self = -1;
  team->assembly.reset();
}

// Gives boards back that all of their team have left.
void SweepRetired() {
  std::erase_if(teams.retired, [](const Teams::Board& board) {
    const auto* const layout =
        reinterpret_cast<const collective::BoardLayout*>(job.region->base() + board.offset);
    // Pairs with Board::Leave.
    const bool is_over = shm::LoadAcquire(layout->left) == static_cast<uint32_t>(board.members);
    if (is_over) {
      job.region->FreeSystem(board.offset, Assembly::BoardBytes(board.members));
    }
    return is_over;
  });
}

// Where a new team is to meet, of which this PE is the first; nowhere, if there is no room.
MeetingPlace MakePlace(bool is_local, int members) {
  std::lock_guard lock(teams.mutex);
  if (!is_local) {
    const auto rounds = static_cast<uint64_t>(teams.numbers_made++);
    return {.context = TeamContext(rounds * static_cast<uint64_t>(job.size) +
                                   static_cast<uint64_t>(job.self))};
  }
  SweepRetired();
  return {.board_offset = job.region->AllocateSystem(Assembly::BoardBytes(members))};
}

// The first PE gives the board back, once all have left it.
void LeaveBoard(const Team& team) {
  const uint64_t offset = team.assembly->where().board_offset;
  const bool is_last = team.assembly->Leave();
  if (team.self == 0 && is_last) {
    job.region->FreeSystem(offset, Assembly::BoardBytes(team.size));
  } else if (team.self == 0) {
    teams.retired.push_back({offset, team.size});
  }
}

Team* TakeTeam() {
  std::lock_guard lock(teams.mutex);
  if (teams.free.empty()) {
    return &teams.all.emplace_back();
  }
  Team* const team = teams.free.back();
  teams.free.pop_back();
  return team;
}

}  // namespace

const Team& no_team = *new Team();

namespace internal {
Context* const default_context = &ferry::shmem::default_context;
}  // namespace internal
Team* WorldTeam() { return &world_team; }
Team* SharedTeam() { return &shared_team; }

void OpenPredefinedTeams() {
  std::vector<int> pes(static_cast<size_t>(job.size));
  for (int pe = 0; pe < job.size; ++pe) {
    pes[static_cast<size_t>(pe)] = pe;
  }
  const MeetingPlace world =
      job.has_remote_pes ? MeetingPlace{.context = kWorldContext}
                         : MeetingPlace{.board_offset = job.region->place_of(0).world_board};
  Open(&world_team, pes, job.self, world, {});
  const std::vector<int>& local = job.local_pes;
  const auto self = std::find(local.begin(), local.end(), job.self) - local.begin();
  Open(&shared_team, local, static_cast<int>(self),
       {.board_offset = job.region->place_of(local.front()).shared_board}, {});
}

void CloseAllTeams(const char* call) {
  std::lock_guard lock(teams.mutex);
  Close(call, &world_team);
  Close(call, &shared_team);
  teams.free.clear();
  for (Team& team : teams.all) {
    Close(call, &team);
    team.private_contexts = 0;
    teams.free.push_back(&team);
  }
  teams.retired.clear();
}

size_t CountOpenTeams() {
  std::lock_guard lock(teams.mutex);
  return static_cast<size_t>(std::count_if(teams.all.begin(), teams.all.end(),
                                           [](const Team& team) { return team.is_open(); }));
}

Team& CheckTeam(const char* call, Team* team) {
  CheckRunning(call);
  if (team == nullptr || !team->is_open()) {
    Fail(call, team == nullptr ? "the team is SHMEM_TEAM_INVALID"
                               : "the team is none (any more): was it destroyed?");
  }
  return *team;
}

// ---- Queries ------------------------------------------------------------------------------------

int TeamMyPe(const char* call, Team* team) {
  CheckRunning(call);
  return team == nullptr ? -1 : CheckTeam(call, team).self;
}

int TeamPeCount(const char* call, Team* team) {
  CheckRunning(call);
  return team == nullptr ? -1 : CheckTeam(call, team).size;
}

int TeamGetConfig(const char* call, Team* team, long mask, TeamConfig* config) {
  CheckRunning(call);
  if (team == nullptr || (mask & ~long{kNumContexts}) != 0 || (mask != 0 && config == nullptr)) {
    return -1;
  }
  if (mask != 0) {
    *config = CheckTeam(call, team).config;
  }
  return 0;
}

int TeamTranslatePe(const char* call, Team* from, int pe, Team* to) {
  CheckRunning(call);
  if (from == nullptr || to == nullptr || !CheckTeam(call, from).Has(pe)) {
    return -1;
  }
  const std::vector<int>& pes = CheckTeam(call, to).pes;
  const int wanted = from->pes[static_cast<size_t>(pe)];
  // Most teams begin with PE 0 and leave no PE out.
  if (to->Has(wanted) && pes[static_cast<size_t>(wanted)] == wanted) {
    return wanted;
  }
  const auto found = std::find(pes.begin(), pes.end(), wanted);
  return found == pes.end() ? -1 : static_cast<int>(found - pes.begin());
}

// ---- Making teams -------------------------------------------------------------------------------

namespace {

// The message by which each PE of the parent tells the others about the team that it is to be in.
struct SplitOffer {
  MeetingPlace where = {};  // by the team's first PE; nowhere: there is no room
  // The arguments of the call, which are the same on all PEs.
  int32_t arguments[4] = {};
};

// Makes the team of the parent's PEs `members`, which this PE is one of, unless there are none.
// Collective over the parent, of which some PEs may be in other teams that are made at the same
// time. 0, or not 0: there is no room for the team.
int Split(const char* call, Team& parent, const std::vector<int>& members, SplitOffer own,
          const TeamConfig* config, long mask, Team** made) {
  *made = nullptr;
  std::vector<int> pes;
  pes.reserve(members.size());
  for (const int member : members) {
    pes.push_back(parent.pes[static_cast<size_t>(member)]);
  }
  const bool is_first = !members.empty() && members.front() == parent.self;
  if (is_first) {
    own.where = MakePlace(job.AreLocal(pes), static_cast<int>(pes.size()));
  }
  std::vector<SplitOffer> offers(static_cast<size_t>(parent.size));
  CheckCollective(call, *parent.assembly, {});
  parent.assembly->Gather(call, &own, sizeof(own), offers.data());
  for (int pe = 0; pe < parent.size; ++pe) {
    const SplitOffer& theirs = offers[static_cast<size_t>(pe)];
    if (!std::equal(std::begin(own.arguments), std::end(own.arguments), theirs.arguments)) {
      Fail(call, "PE " + std::to_string(parent.pes[static_cast<size_t>(pe)]) +
                     " has passed other arguments: all PEs of the parent team must pass the same");
    }
  }
  if (members.empty()) {
    return 0;
  }
  const MeetingPlace& where = offers[static_cast<size_t>(members.front())].where;
  if (where.is_nowhere()) {
    if (is_first) {
      Warn(call, "there is no room for another team of " + std::to_string(members.size()) +
                     " PEs: destroy teams that are used no more");
    }
    return -1;
  }
  const auto self = std::find(members.begin(), members.end(), parent.self) - members.begin();
  Team* const team = TakeTeam();
  Open(team, std::move(pes), static_cast<int>(self), where,
       config != nullptr && (mask & kNumContexts) != 0 ? *config : TeamConfig{});
  *made = team;
  return 0;
}

}  // namespace

int TeamSplitStrided(const char* call, Team* parent, int start, int stride, int size,
                     const TeamConfig* config, long mask, Team** made) {
  CheckRunning(call);
  *made = nullptr;
  if (parent == nullptr) {
    return -1;
  }
  const int all = CheckTeam(call, parent).size;
  const int64_t last = start + int64_t{stride} * (size - 1);
  if (size < 1 || start < 0 || start >= all || last < 0 || last >= all ||
      (stride == 0 && size > 1)) {
    Warn(call, "start " + std::to_string(start) + ", stride " + std::to_string(stride) +
                   " and size " + std::to_string(size) + " name no PEs of a team of " +
                   std::to_string(all));
    return -1;
  }
  std::vector<int> members;
  bool is_member = false;
  for (int i = 0; i < size; ++i) {
    members.push_back(start + i * stride);
    is_member = is_member || members.back() == parent->self;
  }
  if (!is_member) {
    members.clear();
  }
  const SplitOffer own{.arguments = {start, stride, size}};
  return Split(call, *parent, members, own, config, mask, made);
}

int TeamSplit2d(const char* call, Team* parent, int x_range, const TeamConfig* x_config,
                long x_mask, Team** x_team, const TeamConfig* y_config, long y_mask,
                Team** y_team) {
  CheckRunning(call);
  *x_team = *y_team = nullptr;
  if (parent == nullptr) {
    return -1;
  }
  const int all = CheckTeam(call, parent).size;
  if (x_range < 1) {
    Warn(call, "xrange is " + std::to_string(x_range) + ": an axis has at least 1 PE");
    return -1;
  }
  const int width = std::min(x_range, all);
  const SplitOffer own{.arguments = {x_range}};
  std::vector<int> row;
  std::vector<int> column;
  for (int pe = 0; pe < all; ++pe) {
    if (pe / width == parent->self / width) {
      row.push_back(pe);
    }
    if (pe % width == parent->self % width) {
      column.push_back(pe);
    }
  }
  const int x_error = Split(call, *parent, row, own, x_config, x_mask, x_team);
  const int y_error = Split(call, *parent, column, own, y_config, y_mask, y_team);
  return x_error != 0 ? x_error : y_error;
}

void TeamDestroy(const char* call, Team* team) {
  CheckRunning(call);
  if (team == nullptr) {
    return;
  }
  if (team == &world_team || team == &shared_team) {
    Fail(call, "SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED cannot be destroyed");
  }
  (void)CheckTeam(call, team);
  if (team->assembly->is_busy()) {
    Fail(call, "a collective of the team is under way on a queue: wait for it first");
  }
  std::lock_guard lock(teams.mutex);
  if (team->assembly->has_board()) {
    LeaveBoard(*team);
  }
  Close(call, team);
  if (team->private_contexts == 0) {
    teams.free.push_back(team);
  }
}

}  // namespace ferry::shmem

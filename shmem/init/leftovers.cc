#include "shmem/init/leftovers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/counted.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/pieces.h"
#include "shmem/heap/spaces.h"
#include "shmem/rma/contexts.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {
namespace {

constexpr size_t kMostLeftovers = 8;  // pieces that are named one by one

}  // namespace

void WarnOfLeftovers(const char* call) {
  if (job.self != 0) {
    return;
  }
  const std::vector<Piece> pieces = LivePieces();
  for (size_t i = 0; i < std::min(pieces.size(), kMostLeftovers); ++i) {
    Warn(call, Counted(pieces[i].bytes, "byte") + " at offset " + std::to_string(pieces[i].offset) +
                   " of " + HeapName(pieces[i].heap) + ", which " + pieces[i].given_by +
                   " has returned, were never freed");
  }
  if (pieces.size() > kMostLeftovers) {
    Warn(call, Counted(pieces.size() - kMostLeftovers, "further piece") +
                   " of symmetric memory were never freed");
  }
  if (const size_t spaces = CountOpenSpaces(); spaces != 0) {
    Warn(call, Counted(spaces, "space") + " never destroyed: call shmemx_space_destroy");
  }
  if (const size_t teams = CountOpenTeams(); teams != 0) {
    Warn(call, Counted(teams, "team") + " never destroyed: call shmem_team_destroy");
  }
  if (const size_t contexts = CountOpenContexts(); contexts != 0) {
    Warn(call, Counted(contexts, "context") + " never destroyed: call shmem_ctx_destroy");
  }
}

}  // namespace ferry::shmem

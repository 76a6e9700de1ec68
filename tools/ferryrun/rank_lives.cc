#include "tools/ferryrun/rank_lives.h"

#include <algorithm>

#include "common/error_code.h"

namespace ferry::tools {

bool IsOfLostDaemon(const RankNotice& notice) {
  return notice.kind == RankNotice::Kind::kHeardOfEnd &&
         notice.cause == static_cast<int32_t>(ErrorCode::kDaemonDied);
}

void RankLives::OnNotice(const RankNotice& notice) {
  if (notice.rank >= lives_.size()) {
    return;
  }
  Life& life = lives_[notice.rank];
  // A program that a rank has started, or that follows one which never left: both are refused, and
  // the rank owes its call still.
  if (life.is_inside && notice.process != life.process) {
    return;
  }
  switch (notice.kind) {
    case RankNotice::Kind::kEnters:
      life.has_entered = life.is_inside = true;
      life.process = notice.process;
      life.exit = notice.exit;
      entry_ = entry_.empty() ? notice.entry : entry_;
      return;
    case RankNotice::Kind::kMeets:
      life.program = std::max(life.program, notice.program);
      program_ = std::max(program_, notice.program);
      return;
    case RankNotice::Kind::kLeaves:
      life.is_inside = false;
      return;
    case RankNotice::Kind::kHeardOfEnd:
      life.has_heard_of_end = true;
      has_lost_daemon_ |= IsOfLostDaemon(notice);
      return;
    case RankNotice::Kind::kAborts:
    case RankNotice::Kind::kExits:
      return;
  }
}

void RankLives::OnEnd(uint32_t rank, const ProcessEnd& end) {
  Life& life = lives_[rank];
  life.has_ended = true;
  life.end = end;
  life.has_failed = !end.ok() || (life.is_inside && !life.has_heard_of_end);
}

void RankLives::CountExit(uint32_t rank, RankExits* exits) const {
  const Life& life = lives_[rank];
  if (life.has_ended) {
    ++(life.end.signal != 0 ? exits->signals[life.end.signal] : exits->codes[life.end.exit_code]);
  }
}

void RankLives::MarkAbsent(uint32_t rank) {
  lives_[rank].is_absent = lives_[rank].has_failed = true;
}

std::vector<uint32_t> RankLives::TakeSilent() {
  std::vector<uint32_t> silent;
  for (uint32_t rank = 0; rank < lives_.size(); ++rank) {
    Life& life = lives_[rank];
    // One that has entered, and was refused, has said why.
    const bool was_refused = life.has_entered && life.program == 0;
    if (life.has_ended && !was_refused && std::max(life.program, life.taken_for) < program()) {
      life.taken_for = program();
      silent.push_back(rank);
    }
  }
  return silent;
}

std::string RankLives::Describe(uint32_t rank) const {
  const Life& life = lives_[rank];
  if (life.is_absent) {
    return DescribeAbsent(rank);
  }
  const bool owes_a_call = life.is_inside && life.end.signal == 0;
  return tools::Describe(life.end) + (owes_a_call ? " without " + life.exit : "");
}

std::string RankLives::DescribeAbsent(uint32_t rank) const {
  return tools::Describe(lives_[rank].end) + " without " +
         (lives_[rank].program == 0 ? "" : "another ") + entry_ +
         ", in which other ranks wait for it";
}

int RankLives::ExitCode(uint32_t rank) const { return std::max(1, ShellCode(lives_[rank].end)); }

RankLives::Weight RankLives::WeightOf(uint32_t rank) const {
  const Life& life = lives_[rank];
  return life.has_heard_of_end  ? Weight::kConsequence
         : life.end.signal != 0 ? Weight::kKilled
                                : Weight::kByItself;
}

}  // namespace ferry::tools

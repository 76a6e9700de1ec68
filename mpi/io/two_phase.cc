#include "mpi/io/two_phase.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/io/stretch_run.h"

namespace ferry::mpi {

namespace {

// The facts of each node's ranks.
std::map<int, std::vector<AccessFacts>> ByNode(const Comm& comm,
                                               const std::vector<AccessFacts>& all) {
  std::map<int, std::vector<AccessFacts>> nodes;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const int world_rank = comm.WorldRank(static_cast<int>(rank));
    nodes[front_end->NodeOf(static_cast<uint32_t>(world_rank))].push_back(all[rank]);
  }
  return nodes;
}

}  // namespace

AccessFacts TwoPhase::FactsOf(File& file, const CollectivePart& part) {
  AccessFacts facts;
  facts.error_class = part.refused.error_class;
  const Representation representation = view_->representation();
  facts.is_fit =
      !file.is_atomic() && !file.posix().is_stream() &&
      (representation == Representation::kNative || representation == Representation::kInternal);
  facts.is_local = !part.access.is_write && file.is_local();
  facts.buffering = part.access.is_write ? hints_->collective_write() : hints_->collective_read();
  facts.buffer_bytes = hints_->cb_buffer_size();
  facts.aggregators = hints_->cb_nodes();
  DescribeAccess(*view_, shape_, part.access.position, part.refused.ok() ? part.access.bytes() : 0,
                 &facts);
  // A program that asks for buffers gets them also where they seem to be of no use.
  facts.is_plain = facts.is_plain && hints_->collective_write() != Switch::kEnable &&
                   hints_->collective_read() != Switch::kEnable;
  return facts;
}

// Finds out how this node carries the access out.
Failure TwoPhase::Plan(Meeting& meeting, File& file, const CollectivePart& part, NodePlan* plan) {
  // All ranks change their views and their hints together, so that all of them know or none does.
  std::shared_ptr<const View> view = file.view();
  std::shared_ptr<const Hints> hints = file.hints();
  if (view_ != view) {
    view_ = std::move(view);
    shape_ = ShapeOf(*view_);
    is_known_ = false;
  }
  if (hints_ != hints) {
    hints_ = std::move(hints);
    is_known_ = false;
  }
  if (is_known_ && are_plain_) {
    return {};
  }
  const AccessFacts own = FactsOf(file, part);
  std::vector<AccessFacts> all;
  FERRY_RETURN_FAILURE(meeting.Gather(own, &all));
  is_known_ = true;
  are_plain_ =
      std::all_of(all.begin(), all.end(), [](const AccessFacts& facts) { return facts.is_plain; });
  const bool is_refused = std::any_of(all.begin(), all.end(), [](const AccessFacts& facts) {
    return facts.error_class != MPI_SUCCESS;
  });
  if (is_refused || is_refused_) {
    return {};
  }
  const AccessFacts& hints_of_all = all.front();
  const std::map<int, std::vector<AccessFacts>> nodes = ByNode(file.comm(), all);
  const bool is_write = part.access.is_write;
  if (!buffer_.is_set_up()) {
    const bool is_wanted = std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
      return PlanFor(node.second, hints_of_all, is_write).is_buffered;
    });
    if (!is_wanted) {
      return {};
    }
    Failure made = buffer_.SetUp(meeting, file.comm(), StretchBytesFor(hints_of_all.buffer_bytes));
    if (!made.ok()) {
      // Without the memory all goes on as if this call had not wanted it, on all ranks.
      is_refused_ = true;
      return made.error_class == MPI_ERR_PROC_ABORTED ? made : Failure();
    }
  }
  *plan = PlanFor(nodes.at(front_end->NodeOf(front_end->rank())), hints_of_all, is_write);
  plan->stretch_bytes = std::min(plan->stretch_bytes, buffer_.stretch_bytes());
  return {};
}

Failure TwoPhase::Carry(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved,
                        bool* is_carried) {
  NodePlan plan;
  *moved = 0;
  *is_carried = false;
  FERRY_RETURN_FAILURE(Plan(meeting, file, part, &plan));
  if (!plan.is_buffered) {
    return {};
  }
  *is_carried = true;
  StretchRun run(buffer_, plan, file.posix(), part.access, stretches_);
  Failure failure = run.Run();
  stretches_ += run.stretches();
  // After a death the ranks may stand at different stretches.
  is_refused_ = !run.is_over();
  *moved = run.moved();
  return failure;
}

}  // namespace ferry::mpi

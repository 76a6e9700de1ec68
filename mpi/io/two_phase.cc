#include "mpi/io/two_phase.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/io/cells.h"
#include "mpi/io/io_thread.h"
#include "mpi/io/stretch_run.h"

namespace ferry::mpi {

namespace {

struct Nodes {
  std::vector<std::vector<AccessFacts>> facts;  // of each node's ranks
  std::vector<int> leaders;                     // the first rank of each
  int self = 0;
};

class Handing : public IoWork {
 public:
  explicit Handing(const PosixFile& file) : file_(file) {}
  const Failure& failure() const { return failure_; }
  State Work() override {
    failure_ = file_.HandOver();
    return State::kOver;
  }

 private:
  const PosixFile& file_;
  Failure failure_;
};

// The nodes of a file, in the order of their first ranks.
Nodes NodesOf(const Comm& comm, const std::vector<AccessFacts>& all) {
  Nodes nodes;
  std::map<int, size_t> numbers;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const int world_rank = comm.WorldRank(static_cast<int>(rank));
    const int node = front_end->NodeOf(static_cast<uint32_t>(world_rank));
    const auto [found, is_new] = numbers.emplace(node, numbers.size());
    if (is_new) {
      nodes.facts.emplace_back();
      nodes.leaders.push_back(static_cast<int>(rank));
    }
    nodes.facts[found->second].push_back(all[rank]);
  }
  nodes.self = static_cast<int>(numbers.at(front_end->NodeOf(front_end->rank())));
  return nodes;
}

}  // namespace

AccessFacts TwoPhase::FactsOf(File& file, const CollectivePart& part) {
  AccessFacts facts;
  facts.error_class = part.refused.error_class;
  const Representation representation = view_->representation();
  // A rank finds the bytes that it has written, also without a sync: another node might not.
  facts.may_exchange = to_owners_.exchange.is_in_step() &&
                       (part.access.is_write || !file.is_written() || !file.has_caches());
  facts.is_fit =
      !is_refused_ && !file.is_atomic() && !file.posix().is_stream() &&
      (representation == Representation::kNative || representation == Representation::kInternal);
  facts.is_local = file.is_local();
  facts.buffering = part.access.is_write ? hints_->collective_write() : hints_->collective_read();
  facts.buffer_bytes = hints_->cb_buffer_size();
  facts.aggregators = hints_->cb_nodes();
  facts.striping_unit = hints_->striping_unit();
  DescribeAccess(*view_, shape_, part.access.position, part.refused.ok() ? part.access.bytes() : 0,
                 &facts);
  // A program that asks for buffers gets them also where they seem to be of no use.
  if (hints_->collective_write() == Switch::kEnable ||
      hints_->collective_read() == Switch::kEnable) {
    facts.least_piece = 0;
  }
  return facts;
}

// Finds out how this node carries the access out.
Failure TwoPhase::Plan(Meeting& meeting, File& file, const CollectivePart& part, NodePlan* plan) {
  // All ranks change their views and their hints together, so that all of them know or none does.
  if (view_ != part.view) {
    view_ = part.view;
    shape_ = ShapeOf(*view_);
    is_known_ = false;
  }
  if (hints_ != part.hints) {
    hints_ = part.hints;
    is_known_ = false;
  }
  if (is_known_ && IsEachAlone(part.access.is_write)) {
    return {};
  }
  const AccessFacts own = FactsOf(file, part);
  std::vector<AccessFacts> all;
  FERRY_RETURN_FAILURE(meeting.Gather(own, &all));
  is_known_ = true;
  least_piece_ = kNowhere;
  are_local_ = true;
  for (const AccessFacts& facts : all) {
    least_piece_ = std::min(least_piece_, facts.least_piece);
    are_local_ = are_local_ && facts.is_local;
  }
  const bool is_refused = std::any_of(all.begin(), all.end(), [](const AccessFacts& facts) {
    return facts.error_class != MPI_SUCCESS;
  });
  if (is_refused) {
    return {};
  }
  return PlanForNodes(meeting, file, all, part.access.is_write, plan);
}

// Returns true if ranks have not agreed, since one is gone or cut off: they may go on in different
// ways. Otherwise none of them has got what all of them wanted.
bool IsApart(const Failure& failure) {
  return failure.error_class == MPI_ERR_PROC_ABORTED || failure.error_class == MPI_ERR_OTHER;
}

// Fails only where a rank is gone, or cut off.
Failure TwoPhase::SetUpLink(Meeting& meeting, const Comm& comm, const std::vector<int>& leaders,
                            Link* link) {
  if (link->is_set_up || link->is_refused) {
    return {};
  }
  const bool is_leader = buffer_.self() == 0;
  Failure made = meeting.Agree(
      is_leader ? link->exchange.SetUp(comm, leaders, buffer_.stretch_bytes()) : Failure());
  link->is_set_up = made.ok();
  link->is_refused = !made.ok();
  return IsApart(made) ? made : Failure();
}

Failure TwoPhase::PlanForNodes(Meeting& meeting, File& file, const std::vector<AccessFacts>& all,
                               bool is_write, NodePlan* plan) {
  const AccessFacts& hints = all.front();
  Nodes nodes = NodesOf(file.comm(), all);
  node_ = nodes.self;
  const int64_t most_bytes =
      buffer_.is_set_up() ? buffer_.stretch_bytes() : StretchBytesFor(hints.buffer_bytes);
  bool is_exchanged = nodes.facts.size() > 1 && !to_owners_.is_refused && !answers_.is_refused &&
                      PlanExchange(nodes.facts, hints, most_bytes, is_write, plan);
  if (!buffer_.was_tried()) {
    const bool is_wanted =
        is_exchanged || std::any_of(nodes.facts.begin(), nodes.facts.end(), [&](const auto& node) {
          return PlanFor(node, hints, is_write).is_buffered;
        });
    if (!is_wanted) {
      return {};
    }
    Failure made = buffer_.SetUp(meeting, file.comm(), StretchBytesFor(hints.buffer_bytes));
    if (!made.ok()) {
      // Without the memory all goes on as if this call had not wanted it, on all ranks.
      is_refused_ = true;
      *plan = {};
      return IsApart(made) ? made : Failure();
    }
  }
  if (is_exchanged) {
    FERRY_RETURN_FAILURE(SetUpLink(meeting, file.comm(), nodes.leaders, &to_owners_));
    if (!is_write) {
      FERRY_RETURN_FAILURE(SetUpLink(meeting, file.comm(), nodes.leaders, &answers_));
    }
    is_exchanged = to_owners_.is_set_up && (is_write || answers_.is_set_up);
  }
  if (!is_exchanged) {
    *plan = PlanFor(nodes.facts[static_cast<size_t>(node_)], hints, is_write);
    plan->stretch_bytes = std::min(plan->stretch_bytes, buffer_.stretch_bytes());
  }
  return {};
}

// Others may have planned the call, and wait for this rank.
void TwoPhase::Leave(const Failure& failure) {
  const ErrorCode why =
      failure.error_class == MPI_ERR_PROC_ABORTED ? ErrorCode::kPeerDied : ErrorCode::kLinkDown;
  is_refused_ = true;
  buffer_.Leave(why);
  to_owners_.exchange.Leave(why);
}

Failure TwoPhase::Carry(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved,
                        Way* way) {
  NodePlan plan;
  *moved = 0;
  *way = Way::kApart;
  to_owners_.exchange.NoteCuts();
  if (Failure planned = Plan(meeting, file, part, &plan); !planned.ok()) {
    Leave(planned);
    const bool may_be_alone =
        FactsOf(file, part).least_piece >= LongPiece(part.access.is_write, /*is_local=*/true);
    *way = planned.error_class == MPI_ERR_OTHER && !may_be_alone ? Way::kApart : Way::kAlone;
    return planned;
  }
  if (!plan.is_buffered) {
    *way = IsEachAlone(part.access.is_write) ? Way::kAlone : Way::kApart;
    return {};
  }
  *way = plan.is_exchanged ? Way::kBetweenNodes : Way::kInNode;
  const std::optional<Cells> cells =
      plan.is_exchanged ? std::make_optional<Cells>(plan, node_) : std::nullopt;
  ExchangeOfCells exchange;
  if (cells) {
    exchange = {&*cells, &to_owners_.exchange, part.access.is_write ? nullptr : &answers_.exchange};
  }
  StretchRun run(buffer_, plan, file.posix(), part.access, stretches_, exchange);
  Failure failure;
  if (meeting.background() == nullptr) {
    failure = run.Run();
  } else {
    meeting.background()->Do(&run, LineOf(file, part.access.is_write));
    failure = run.Finish();
  }
  stretches_ += run.stretches();
  // After a death, or a cut link, the ranks may stand at different stretches.
  is_refused_ = !run.is_over();
  *moved = run.moved();
  if (cells && part.access.is_write && file.has_caches()) {
    const Failure handed = HandOver(meeting, file);
    failure = failure.ok() ? handed : failure;
  }
  return failure;
}

// This node has written bytes of other nodes' ranks, whose next reads are to find them.
Failure TwoPhase::HandOver(Meeting& meeting, File& file) {
  if (buffer_.self() != 0) {
    return {};
  }
  if (meeting.background() == nullptr) {
    return file.posix().HandOver();
  }
  Handing handing(file.posix());
  meeting.background()->Do(&handing, LineOf(file, true));
  return handing.failure();
}

}  // namespace ferry::mpi

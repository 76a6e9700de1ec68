#include "coll/levels/two_levels.h"

#include <algorithm>
#include <utility>

namespace ferry::collective {
namespace {

// Larger scratch memory is not kept for the next call.
constexpr size_t kKeptScratchBytes = size_t{1} << 20;

bool HasFailed(const RunFailure& failure) { return failure.code != ErrorCode::kOk; }

RunFailure FailureBefore(const Binding& binding) {
  return binding.before != nullptr ? *binding.before : RunFailure();
}

// A part whose ranks move, or reduce, as many bytes as the whole collective's.
Problem PartOf(const Problem& problem, Collective collective) {
  Problem part;
  part.collective = collective;
  part.rank = problem.rank;
  part.size = problem.size;
  part.block_bytes = problem.collective == Collective::kBarrier ? 0 : problem.block_bytes;
  part.element_bytes = problem.element_bytes;
  part.commutative = problem.commutative;
  return part;
}

}  // namespace

TwoLevels::TwoLevels(const NumberList& node_of, int self, Board* board, const BoardLimits& limits,
                     Messenger* messenger)
    : node_of_(node_of),
      self_(self),
      are_nodes_alike_(node_of.AreEquallyOften()),
      board_(board),
      limits_(limits),
      messenger_(messenger) {
  for (int rank = 0; rank < static_cast<int>(node_of.size()); ++rank) {
    if (NodeOf(rank) == NodeOf(self)) {
      index_ = rank == self ? static_cast<int>(local_.size()) : index_;
      local_.push_back(rank);
    }
  }
}

TwoLevels::~TwoLevels() {
  if (scratch_.memory != nullptr) {
    messenger_->FreeScratch(scratch_.memory);
  }
}

bool TwoLevels::Takes(const Problem& problem, const SelectionTable& table) {
  if (problem.has_blocks) {
    return false;
  }
  Decision& decision = decisions_[static_cast<size_t>(problem.collective)];
  if (decision.block_bytes != problem.block_bytes || decision.commutative != problem.commutative) {
    Problem whole = problem;
    whole.node_of = node_of_;
    decision = {problem.block_bytes, problem.commutative, table.LeavesToBoards(whole)};
  }
  return decision.is_taken;
}

void TwoLevels::Skip(uint64_t number) {
  if (board_ != nullptr) {
    board_->Skip(number * kParts + kSpread);
  }
}

void TwoLevels::Renounce(uint64_t number) {
  if (board_ != nullptr) {
    board_->Renounce(number * kParts + kSpread);
  }
}

int TwoLevels::LeaderFor(const Problem& problem) const {
  return HasRoot(problem.collective) && NodeOf(problem.root) == NodeOf(self_) ? problem.root
                                                                              : local_.front();
}

void* TwoLevels::TakeScratch(size_t size_bytes, int device) {
  if (scratch_.memory != nullptr &&
      (scratch_.size_bytes < size_bytes || scratch_.size_bytes > kKeptScratchBytes ||
       scratch_.device != device)) {
    messenger_->FreeScratch(scratch_.memory);
    scratch_ = {};
  }
  if (scratch_.memory == nullptr) {
    scratch_ = {messenger_->AllocateScratch(size_bytes, device), size_bytes, device};
  }
  return scratch_.memory;
}

// ---- The parts ----------------------------------------------------------------------------------

RunFailure TwoLevels::Run(uint64_t number, const Problem& problem, const Binding& binding,
                          PartsByMessages* messages) {
  const Call call{number, problem, binding, messages, LeaderFor(problem)};
  Data data{binding.input, binding.output, problem.in_place};
  RunFailure failure = FailureBefore(binding);
  if (!is_alone() && problem.collective != Collective::kBcast) {
    failure = Collect(call, &data);
  }
  if (call.leader == self_) {
    failure = messages->Run(AmongLeaders(problem, data),
                            {data.input, data.output, binding.reducer, binding.device}, failure);
  }
  return is_alone() || problem.collective == Collective::kReduce ? failure : Spread(call, failure);
}

// The leader gets what the ranks of its node have, or their reduction. `data`: where it lies then.
RunFailure TwoLevels::Collect(const Call& call, Data* data) {
  const Problem& problem = call.problem;
  const bool gathers = problem.collective == Collective::kAllgather;
  const bool is_barrier = problem.collective == Collective::kBarrier;  // gathers nothing
  Problem part = PartOf(problem, gathers || is_barrier ? Collective::kGather : Collective::kReduce);
  Binding binding = call.binding;
  char* const output = static_cast<char*>(binding.output);
  if (call.leader != self_) {
    if (problem.in_place) {
      binding.input = output + (gathers ? static_cast<size_t>(self_) * problem.block_bytes : 0);
    }
    return RunInNode(call, kCollect, std::move(part), binding, FailureBefore(binding));
  }
  part.in_place = problem.in_place;
  *data = {nullptr, output, true};
  RunFailure before = FailureBefore(binding);
  if (gathers) {  // the blocks of a node lie together (IsForBoards)
    binding.output = output + static_cast<size_t>(local_.front()) * problem.block_bytes;
  } else if (problem.collective == Collective::kReduce && problem.root != self_) {
    binding.output = TakeScratch(problem.block_bytes, binding.device);
    *data = {binding.output, nullptr, false};
    if (binding.output == nullptr && !HasFailed(before)) {
      before.code = ErrorCode::kOutOfMemory;
    }
  }
  return RunInNode(call, kCollect, std::move(part), binding, before);
}

// The other ranks of the node get the leader's output.
RunFailure TwoLevels::Spread(const Call& call, const RunFailure& before) {
  Problem part = PartOf(call.problem, Collective::kBcast);
  part.in_place = true;
  part.element_bytes = 1;
  if (call.problem.collective == Collective::kAllgather) {
    part.block_bytes *= node_of_.size();
  }
  return RunInNode(call, kSpread, std::move(part), {.output = call.binding.output}, before);
}

RunFailure TwoLevels::RunInNode(const Call& call, Part which, Problem part, const Binding& binding,
                                const RunFailure& before) {
  part.root = call.leader;
  if (board_ != nullptr) {
    Problem here = part;  // with the numbers of the board
    here.rank = index_;
    here.size = static_cast<int>(local_.size());
    here.root = static_cast<int>(std::lower_bound(local_.begin(), local_.end(), part.root) -
                                 local_.begin());
    const uint64_t number = call.number * kParts + which;
    const uint64_t signature = SignatureOf(call.problem);
    RunFailure failure = before;
    BoardResult result = BoardResult::kDone;
    if (!CanRunOnBoard(here, limits_)) {
      board_->Skip(number);
      result = BoardResult::kNotForBoards;
    } else if (HasFailed(before)) {
      board_->Renounce(number, signature);
    } else {
      result = RunPartOnBoard(board_, number, signature, here, binding, limits_, &failure);
      failure.peer = failure.peer < 0 ? failure.peer : local_[static_cast<size_t>(failure.peer)];
    }
    if (result == BoardResult::kDone) {
      return failure;
    }
    part.of_devices = result == BoardResult::kElsewhere;
  }
  part.among = Among::kNode;
  if (call.problem.collective == Collective::kBarrier) {
    part.collective = Collective::kBarrier;  // there are no messages of nothing
  }
  return call.messages->Run(part, binding, before);
}

Problem TwoLevels::AmongLeaders(const Problem& problem, const Data& data) const {
  Problem part = PartOf(problem, problem.collective);
  part.root = problem.root;
  part.in_place = data.in_place;
  part.among = Among::kLeaders;
  if (problem.collective != Collective::kAllgather) {
    return part;
  }
  part.has_blocks = !are_nodes_alike_;
  if (are_nodes_alike_) {
    part.block_bytes *= local_.size();
    return part;
  }
  for (size_t first = 0, end = 0; first < node_of_.size(); first = end) {  // nodes are in order
    while (end < node_of_.size() && node_of_[end] == node_of_[first]) {
      ++end;
    }
    part.receive_blocks.push_back(
        {first * problem.block_bytes, (end - first) * problem.block_bytes});
  }
  return part;
}

}  // namespace ferry::collective

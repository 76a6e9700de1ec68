#include "coll/messages/kept_runs.h"

namespace ferry::collective {
namespace {

// How many idle schedules are kept, and the largest scratch memory that one may hold.
constexpr size_t kKeptRuns = 32;
constexpr size_t kKeptScratchBytes = size_t{1} << 20;

uint64_t Mix(uint64_t sum, uint64_t word) {
  sum ^= word;
  sum *= 0x9e3779b97f4a7c15;
  return sum ^ (sum >> 29);
}

uint64_t KeyOf(const Problem& problem) {
  uint64_t key = static_cast<uint64_t>(problem.collective) | uint64_t{problem.in_place} << 8 |
                 uint64_t{problem.has_blocks} << 9 | uint64_t{problem.commutative} << 10 |
                 uint64_t{problem.of_devices} << 11 | static_cast<uint64_t>(problem.among) << 12 |
                 static_cast<uint64_t>(problem.root) << 32;
  key = Mix(Mix(Mix(0, key), problem.block_bytes), problem.element_bytes);
  for (const std::vector<Block>* blocks : {&problem.send_blocks, &problem.receive_blocks}) {
    for (const Block& block : *blocks) {
      key = Mix(Mix(key, block.offset_bytes), block.size_bytes);
    }
  }
  return key;
}

// Compares what the communicator does not settle. It settles the neighbours: it has one topology.
bool IsSame(const Problem& a, const Problem& b) {
  return a.collective == b.collective && a.root == b.root && a.in_place == b.in_place &&
         a.block_bytes == b.block_bytes && a.has_blocks == b.has_blocks &&
         a.element_bytes == b.element_bytes && a.commutative == b.commutative &&
         a.of_devices == b.of_devices && a.are_parts_apart == b.are_parts_apart &&
         a.among == b.among && a.send_blocks == b.send_blocks &&
         a.receive_blocks == b.receive_blocks;
}

}  // namespace

KeptRuns::Taken KeptRuns::Take(const Problem& problem, const SelectionTable& table) {
  uses_++;
  if (last_ != nullptr && last_->run != nullptr && IsSame(last_->problem, problem)) [[likely]] {
    last_->last_use = uses_;
    return {std::move(last_->run), last_};
  }
  const uint64_t key = KeyOf(problem);
  for (Kept& kept : kept_) {
    if (kept.key == key && kept.run != nullptr && IsSame(kept.problem, problem)) {
      last_ = &kept;
      kept.last_use = uses_;
      return {std::move(kept.run), &kept};
    }
  }
  return Make(key, problem, table);
}

Schedule KeptRuns::MakeSchedule(const Problem& problem, const SelectionTable& table) const {
  Problem whole = problem;
  whole.rank = self_;
  whole.size = static_cast<int>(node_of_.size());
  whole.node_of = node_of_;
  return collective::MakeSchedule(table, whole);
}

KeptRuns::Taken KeptRuns::Make(uint64_t key, const Problem& problem, const SelectionTable& table) {
  Taken taken(runner_->Prepare(std::make_shared<const Schedule>(MakeSchedule(problem, table))),
              nullptr);
  if (taken.run_->schedule().scratch_bytes > kKeptScratchBytes) {
    return taken;
  }
  if (Kept* const room = FindRoom(); room != nullptr) {
    room->key = key;
    room->problem = problem;
    room->last_use = uses_;
    taken.home_ = last_ = room;
  }
  return taken;
}

// A place for one more, perhaps that of the one that was not used for longest. Null: all are in
// use.
KeptRuns::Kept* KeptRuns::FindRoom() {
  if (kept_.size() < kKeptRuns) {
    return &kept_.emplace_back();
  }
  Kept* oldest = nullptr;
  for (Kept& kept : kept_) {
    if (kept.run != nullptr && (oldest == nullptr || kept.last_use < oldest->last_use)) {
      oldest = &kept;
    }
  }
  if (oldest != nullptr) {
    oldest->run.reset();
  }
  return oldest;
}

void KeptRuns::GiveBack(Taken taken) {
  if (taken.home_ != nullptr) {
    taken.home_->run = std::move(taken.run_);
  }
}

}  // namespace ferry::collective

#include "internode/staging/staging_pool.h"

#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "shm/layout/lane_layout.h"

namespace ferry::progress {
namespace {

// A block that is nearly empty is as good as lost to the others, too.
constexpr uint64_t kLeastCharge = 4096;
// The most blocks for one transfer, whatever its rank's share: the other daemon remembers only so
// many announcements.
constexpr uint32_t kWidestWindow = 32;

// Returns the most blocks of one half that one node may hold while no other wants any: where there
// are enough, the least part of another node stays free.
uint32_t MostOfNode(uint32_t blocks) {
  const uint32_t half = blocks / 2;
  return half > 2 * SlotShares::kLeast ? half - SlotShares::kLeast : half;
}

}  // namespace

// ---- FairQueue ----

FairQueue::FairQueue(FlowWeights weights) : weights_(std::move(weights)) {}

FairQueue::Flow& FairQueue::FlowOf(uint32_t flow) {
  const auto [found, is_new] = flows_.try_emplace(flow);
  if (is_new) {
    const auto weight = weights_.find(flow);
    found->second.weight = weight == weights_.end() ? 1 : std::max<uint32_t>(weight->second, 1);
  }
  return found->second;
}

void FairQueue::Push(uint32_t flow, uint64_t id, const SlotFlow* part) {
  Flow& one = FlowOf(flow);
  if (one.line.empty()) {
    one.start = std::max(now_, one.finish);
  }
  one.line.push_back({id, part});
  ++size_;
}

std::optional<uint64_t> FairQueue::PopIf(const std::function<bool(const SlotFlow* part)>& may_go) {
  Flow* next = nullptr;
  std::deque<Waiting>::iterator first;
  for (auto& [number, flow] : flows_) {
    if (next != nullptr && flow.start >= next->start) {
      continue;
    }
    const auto found = std::find_if(flow.line.begin(), flow.line.end(),
                                    [&](const Waiting& one) { return may_go(one.part); });
    if (found != flow.line.end()) {
      next = &flow;
      first = found;
    }
  }
  if (next == nullptr) {
    return std::nullopt;
  }
  const uint64_t id = first->id;
  next->line.erase(first);
  --size_;
  return id;
}

std::vector<uint64_t> FairQueue::PopAll() {
  std::vector<uint64_t> ids;
  while (!empty()) {
    ids.push_back(Pop());
  }
  return ids;
}

void FairQueue::Charge(uint32_t flow, uint64_t bytes) {
  Flow& one = FlowOf(flow);
  now_ = std::max(now_, one.finish);
  one.finish = now_ + bytes / one.weight;
  one.start = one.finish;
}

uint32_t FairQueue::ShareOf(uint32_t flow, uint32_t total) {
  const Flow& asked = FlowOf(flow);
  uint64_t weights = asked.weight;
  for (const auto& [number, one] : flows_) {
    weights += &one != &asked && (one.held != 0 || !one.line.empty()) ? one.weight : 0;
  }
  return static_cast<uint32_t>(total * asked.weight / weights);
}

// ---- BlockMemory ----

namespace {

void Tell(const TellOperator& tell, const std::string& text) {
  if (tell) {
    tell(text);
  }
}

}  // namespace

BlockMemory::BlockMemory(std::shared_ptr<const StagingMemory> whole, std::byte* base,
                         uint64_t bytes, std::shared_ptr<MemoryUser> user)
    : whole_(std::move(whole)), base_(base), bytes_(bytes), user_(std::move(user)) {}

void BlockMemory::Admit() {
  if (user_ != nullptr && !admitted_) {
    user_->Admit(base_, bytes_);
    admitted_ = true;
  }
}

BlockMemory::~BlockMemory() {
  if (admitted_) {
    user_->Dismiss(base_);
  }
  const auto offset = static_cast<off_t>(base_ - whole_->mapping.base());
  if (fallocate(whole_->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                static_cast<off_t>(bytes_)) != 0) {
    Tell(whole_->tell,
         std::string("a staging block's memory stays with its pool: ") + strerror(errno));
  }
}

// ---- StagingPool ----

StatusOr<std::unique_ptr<StagingPool>> StagingPool::Create(Registrar& registrar,
                                                           const StagingShape& shape,
                                                           const SettleMemory& settle) {
  if (shape.blocks < 2 || shape.block_bytes == 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "staging needs at least 2 blocks, one for each direction (staging_blocks is " +
                      std::to_string(shape.blocks) + ")");
  }
  StatusOr<UniqueFd> fd = shm::CreateSegment(
      "ferry-staging", shape.block_bytes * shape.blocks + uint64_t{kCells} * shm::kCellBytes);
  FERRY_RETURN_IF_ERROR(fd.status());
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  if (settle) {
    settle(mapping->base(), mapping->size_bytes());
  }
  auto memory = std::make_shared<const StagingMemory>(
      StagingMemory{std::move(*fd), std::move(*mapping), shape.tell});
  std::unique_ptr<StagingPool> pool(new StagingPool(registrar, std::move(memory), shape));
  pool->PinAll();
  return pool;
}

StagingPool::StagingPool(Registrar& registrar, std::shared_ptr<const StagingMemory> memory,
                         const StagingShape& shape)
    : registrar_(registrar),
      memory_(std::move(memory)),
      shape_(shape),
      cells_(std::make_shared<BlockMemory>(memory_, base() + shape.block_bytes * shape.blocks,
                                           uint64_t{kCells} * shm::kCellBytes, shape.user)),
      blocks_(shape.blocks),
      halves_{
          {{shape.weights, MostOfNode(shape.blocks)}, {shape.weights, MostOfNode(shape.blocks)}}} {
  for (uint32_t i = shape.blocks; i-- > 0;) {
    StagingBlock& block = blocks_[i];
    block.base = base() + i * shape.block_bytes;
    block.use = i % 2 == 0 ? StagingUse::kOutgoing : StagingUse::kIncoming;
    HalfOf(block.use).absent.push_back(&block);  // the first ones last: they are enlisted first
  }
  for (Half& half : halves_) {
    half.free.reserve(shape.blocks);
  }
  tainted_.reserve(shape.blocks);
  const bool grows = shape.least_blocks != 0 && shape.least_blocks < shape.blocks;
  const uint32_t first = grows ? std::max(shape.least_blocks, 2U) : shape.blocks;
  for (uint32_t i = 0; i < first; ++i) {
    Half& half = halves_[i % 2];
    Enlist(half);
    ++half.least;
  }
  for (uint32_t i = 0; i < kCells; ++i) {
    free_cells_.push_back(base() + shape.block_bytes * shape.blocks +
                          uint64_t{i} * shm::kCellBytes);
  }
}

// ---- Registering -------------------------------------------------------------------------------

namespace {

// Only what leaves is read by peers.
transport::Access AccessOf(const StagingBlock& block) {
  return block.use == StagingUse::kOutgoing ? transport::Access::kRemoteRead
                                            : transport::Access::kLocal;
}

}  // namespace

void StagingPool::Pin(StagingBlock* block) {
  auto memory = std::make_shared<BlockMemory>(memory_, block->base, block_bytes(), shape_.user);
  PinRequest request{.base = block->base,
                     .bytes = block_bytes(),
                     .access = AccessOf(*block),
                     .memory = memory,
                     .on_end = [this, block] { OnPinned(block); }};
  if (shape_.user != nullptr) {
    request.prepare = [cells = cells_, memory] {
      cells->Admit();
      memory->Admit();
    };
  }
  block->pinned = PinnedMemory(registrar_, std::move(request));
}

void StagingPool::OnPinned(StagingBlock* block) {
  if (block->growing) {
    return OnGrown(block);
  }
  if (complete_) {
    if (block->pinned.is_pinned()) {
      Recycle();
    }
    return;
  }
  failure_ = failure_.ok() ? block->pinned.status() : failure_;
  GiveAllIfComplete();
}

// None is lent until all can be: a job has its memory, or has none.
void StagingPool::GiveAllIfComplete() {
  complete_ = std::all_of(blocks_.begin(), blocks_.end(), [](const StagingBlock& block) {
    return block.pinned.is_pinned() || !block.present;
  });
  if (!complete_) {
    return;
  }
  for (StagingBlock& block : blocks_) {
    if (block.present) {
      Free(&block);
    }
  }
  if (exhausted_) {
    Exhaust();
  }
}

void StagingPool::PinAll() {
  if (complete_) {
    return;
  }
  for (StagingBlock& block : blocks_) {
    if (block.present && block.pinned.code() == ErrorCode::kNotFound) {
      Pin(&block);
    } else if (block.present && !block.pinned.is_pinned()) {
      (void)block.pinned.TryRenew();
    }
  }
}

// ---- Growing and shrinking ---------------------------------------------------------------------

StagingBlock* StagingPool::Enlist(Half& half) {
  StagingBlock* block = half.absent.back();
  half.absent.pop_back();
  ++half.present;
  block->present = true;
  return block;
}

// Removes an idle block: unpins it, then frees its memory on the registrar's thread.
void StagingPool::Leave(StagingBlock* block) {
  Half& half = HalfOf(block->use);
  --half.present;
  half.absent.push_back(block);
  block->present = false;
  block->pinned = {};
}

void StagingPool::Grow() {
  for (Half& half : halves_) {
    const bool wanted = half.free.empty() && !half.waiters.empty();
    if (wanted && complete_ && !exhausted_ && !refused_ && half.growing == 0) {
      Grow(half);
    }
  }
}

// Grows by as many blocks as there are, so that transfers have to wait for growth few times.
void StagingPool::Grow(Half& half) {
  for (size_t more = std::min<size_t>(half.present, half.absent.size()); more > 0; --more) {
    StagingBlock* block = Enlist(half);
    block->growing = true;
    ++half.growing;
    Pin(block);
  }
}

void StagingPool::OnGrown(StagingBlock* block) {
  block->growing = false;
  --HalfOf(block->use).growing;
  if (block->pinned.is_pinned()) {
    ++grown_;
    Free(block);
    return;
  }
  if (!std::exchange(refused_, true)) {
    Tell(shape_.tell, "a job's staging memory does not grow beyond " + std::to_string(blocks()) +
                          " blocks of " + std::to_string(block_bytes()) +
                          " bytes: " + block->pinned.status().message());
  }
  Leave(block);
}

void StagingPool::Trim(uint64_t now_ns) {
  if (!complete_ || exhausted_ || now_ns - trimmed_ns_ < shape_.idle_ns) {
    return;
  }
  for (Half& half : halves_) {
    size_t spare =
        trimmed_ns_ == 0 ? 0 : std::min<size_t>(half.unneeded, half.present - half.least);
    // Those that were not used for longest come first.
    std::erase_if(half.free, [&](StagingBlock* block) {
      if (spare == 0 || !block->pinned.TryRelease()) {
        return false;
      }
      --spare;
      ++shrunk_;
      Leave(block);
      return true;
    });
    half.unneeded = half.free.size();
  }
  refused_ = refused_ && trimmed_ns_ == 0;  // the first call only begins a period
  trimmed_ns_ = now_ns;
}

uint32_t StagingPool::blocks() const {
  return halves_[0].present + halves_[1].present - halves_[0].growing - halves_[1].growing;
}

bool StagingPool::has_spare() const {
  return shape_.idle_ns != StagingShape::kNeverIdle &&
         std::any_of(halves_.begin(), halves_.end(),
                     [](const Half& half) { return half.present > half.least; });
}

// ---- Lending -----------------------------------------------------------------------------------

StagingBlock* StagingPool::Take(StagingUse use, uint32_t rank, SlotFlow* flow) {
  Half& half = HalfOf(use);
  if (half.free.empty()) {
    return nullptr;
  }
  StagingBlock* block = half.free.back();
  half.free.pop_back();
  half.unneeded = std::min(half.unneeded, half.free.size());
  block->rank = rank;
  block->flow = flow;
  half.waiters.Hold(rank);
  if (flow != nullptr) {
    half.shares.Take(*flow);
  }
  return block;
}

void StagingPool::Charge(const StagingBlock& block, uint64_t bytes) {
  waiters(block.use).Charge(block.rank, std::max(bytes, kLeastCharge));
}

// One more than the share, so that the rank asks for its next block before the others have it.
uint32_t StagingPool::Window(StagingUse use, uint32_t rank, uint32_t usual) {
  Half& half = HalfOf(use);
  if (half.waiters.empty()) {
    return usual;
  }
  const uint32_t share = half.waiters.ShareOf(rank, half.present - half.growing);
  return std::clamp(share + 1, usual, std::max(usual, kWidestWindow));
}

// Notes that no rank holds the block any more.
void StagingPool::TakeBack(StagingBlock* block) {
  Half& half = HalfOf(block->use);
  half.waiters.Drop(block->rank);
  if (SlotFlow* const flow = std::exchange(block->flow, nullptr); flow != nullptr) {
    half.shares.Give(*flow);
  }
}

void StagingPool::Give(StagingBlock* block) {
  TakeBack(block);
  Free(block);
}

void StagingPool::GiveTainted(StagingBlock* block) {
  TakeBack(block);
  block->tainted = true;
  tainted_.push_back(block);
  Recycle();
}

void StagingPool::Recycle() {
  std::erase_if(tainted_, [this](StagingBlock* block) {
    if (!block->tainted && block->pinned.is_pinned()) {
      Free(block);
      return true;
    }
    if (block->pinned.TryRenew()) {
      block->tainted = false;
    }
    return false;
  });
}

std::byte* StagingPool::TakeCell() {
  if (free_cells_.empty()) {
    return nullptr;
  }
  std::byte* cell = free_cells_.back();
  free_cells_.pop_back();
  return cell;
}

void StagingPool::Return(std::byte* fragment) {
  const auto index = static_cast<uint64_t>(fragment - base()) / block_bytes();
  if (index < blocks_.size()) {
    Give(&blocks_[index]);
  } else {
    GiveCell(fragment);
  }
}

void StagingPool::Exhaust() {
  exhausted_ = true;
  for (Half& half : halves_) {
    half.free.swap(half.kept_back);
  }
}

void StagingPool::Replenish() {
  exhausted_ = false;
  for (Half& half : halves_) {
    for (StagingBlock* block : std::exchange(half.kept_back, {})) {
      Free(block);
    }
  }
}

void StagingPool::KeepLentUntil(uint64_t time_ns) {
  for (StagingBlock& block : blocks_) {
    const auto& free = HalfOf(block.use).free;
    if (std::find(free.begin(), free.end(), &block) == free.end()) {
      block.pinned.ReleaseAt(time_ns);
    }
  }
}

uint32_t StagingPool::fragments() const { return static_cast<uint32_t>(blocks_.size()) + kCells; }

uint32_t StagingPool::busy() const {
  if (!complete_) {
    return 0;
  }
  return blocks() - static_cast<uint32_t>(halves_[0].free.size() + halves_[1].free.size());
}

}  // namespace ferry::progress

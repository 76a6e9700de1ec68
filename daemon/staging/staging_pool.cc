#include "daemon/staging/staging_pool.h"

#include <algorithm>
#include <utility>

#include "shm/layout/lane_layout.h"

namespace ferry::daemon {

StatusOr<std::unique_ptr<StagingPool>> StagingPool::Create(transport::Transport& transport,
                                                           uint64_t block_bytes, uint32_t blocks,
                                                           const SettleMemory& settle,
                                                           Registrar* registrar) {
  if (blocks < 2 || block_bytes == 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "staging needs at least 2 blocks, one for each direction (staging_blocks is " +
                      std::to_string(blocks) + ")");
  }
  StatusOr<UniqueFd> fd = shm::CreateSegment(
      "ferry-staging", block_bytes * blocks + uint64_t{kCells} * shm::kCellBytes);
  FERRY_RETURN_IF_ERROR(fd.status());
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  if (settle) {
    settle(mapping->base(), mapping->size_bytes());
  }
  std::unique_ptr<StagingPool> pool(new StagingPool(transport, registrar, std::move(*fd),
                                                    std::move(*mapping), block_bytes, blocks));
  if (registrar != nullptr) {
    pool->PinAll();
    return pool;
  }
  for (StagingBlock& block : pool->blocks_) {
    if (Status status = pool->Register(&block); !status.ok()) {
      pool->Close();
      return status;
    }
  }
  pool->GiveAllIfComplete();
  return pool;
}

StagingPool::StagingPool(transport::Transport& transport, Registrar* registrar, UniqueFd fd,
                         shm::Mapping mapping, uint64_t block_bytes, uint32_t blocks)
    : transport_(transport),
      registrar_(registrar),
      fd_(std::make_shared<UniqueFd>(std::move(fd))),
      mapping_(std::make_shared<const shm::Mapping>(std::move(mapping))),
      block_bytes_(block_bytes),
      blocks_(blocks) {
  for (uint32_t i = 0; i < blocks; ++i) {
    blocks_[i].base = base() + i * block_bytes;
    blocks_[i].use = i % 2 == 0 ? StagingUse::kOutgoing : StagingUse::kIncoming;
  }
  for (auto& list : free_) {
    list.reserve(blocks);
  }
  tainted_.reserve(blocks);
  for (uint32_t i = 0; i < kCells; ++i) {
    free_cells_.push_back(base() + block_bytes * blocks + uint64_t{i} * shm::kCellBytes);
  }
}

// ---- Registering
// ---------------------------------------------------------------------------------

namespace {

// Only what leaves is read by peers.
transport::Access AccessOf(const StagingBlock& block) {
  return block.use == StagingUse::kOutgoing ? transport::Access::kRemoteRead
                                            : transport::Access::kLocal;
}

}  // namespace

Status StagingPool::Register(StagingBlock* block) {
  auto prepared = transport_.PrepareMemory(block->base, block_bytes_, AccessOf(*block));
  FERRY_RETURN_IF_ERROR(prepared.status());
  return Adopt(block, std::move(*prepared));
}

Status StagingPool::Adopt(StagingBlock* block,
                          std::unique_ptr<transport::Registration> registration) {
  StatusOr<transport::MemoryRegion> region = transport_.AdoptMemory(std::move(registration));
  FERRY_RETURN_IF_ERROR(region.status());
  block->registration = *region;
  block->registered = true;
  return {};
}

void StagingPool::Pin(StagingBlock* block) {
  auto pinning = std::make_shared<Pinning>();
  pinning->base = block->base;
  pinning->bytes = block_bytes_;
  pinning->access = AccessOf(*block);
  pinning->sink = this;
  pinning->context = block;
  block->pinning = true;
  ++pinning_;
  registrar_->Pin(std::move(pinning));
}

void StagingPool::OnPinned(Pinning& pinning) {
  auto* block = static_cast<StagingBlock*>(pinning.context);
  block->pinning = false;
  --pinning_;
  Status status = pinning.status;
  if (status.ok()) {
    status = Adopt(block, std::move(pinning.registration));
  }
  if (complete_) {
    if (status.ok()) {
      Recycle();
    }
    return;
  }
  failure_ = failure_ == ErrorCode::kOk ? status.code() : failure_;
  GiveAllIfComplete();
}

// None is lent until all can be: a job has its memory, or has none.
void StagingPool::GiveAllIfComplete() {
  complete_ = std::all_of(blocks_.begin(), blocks_.end(),
                          [](const StagingBlock& block) { return block.registered; });
  for (size_t i = 0; complete_ && i < blocks_.size(); ++i) {
    Give(&blocks_[i]);
  }
  if (complete_ && exhausted_) {
    free_.swap(kept_back_);
  }
}

void StagingPool::PinAll() {
  if (complete_) {
    return;
  }
  for (StagingBlock& block : blocks_) {
    if (!block.registered && !block.pinning) {
      Pin(&block);
    }
  }
}

// False: the network uses it.
bool StagingPool::Release(StagingBlock* block) {
  if (!block->registered) {
    return true;
  }
  auto released = transport_.ReleaseMemory(block->registration.handle);
  if (released.status().code() == ErrorCode::kWouldBlock) {
    return false;
  }
  block->registered = block->tainted = false;
  if (registrar_ != nullptr && released.ok()) {
    registrar_->Unpin(std::move(*released), mapping_, nullptr);
  }
  return true;
}

// ---- Lending
// -------------------------------------------------------------------------------------

StagingBlock* StagingPool::Take(StagingUse use) {
  auto& list = free_[static_cast<uint32_t>(use)];
  if (list.empty()) {
    return nullptr;
  }
  StagingBlock* block = list.back();
  list.pop_back();
  return block;
}

void StagingPool::Give(StagingBlock* block) {
  free_[static_cast<uint32_t>(block->use)].push_back(block);
}

void StagingPool::GiveTainted(StagingBlock* block) {
  block->tainted = true;
  tainted_.push_back(block);
  Recycle();
}

void StagingPool::Recycle() {
  std::erase_if(tainted_, [this](StagingBlock* block) {
    if (block->pinning) {
      return false;
    }
    if (!block->tainted && block->registered) {
      Give(block);
      return true;
    }
    if (!Release(block)) {
      return false;
    }
    if (registrar_ != nullptr) {
      Pin(block);
      return false;
    }
    if (!Register(block).ok()) {
      return false;  // the NIC takes no registration now: another time
    }
    Give(block);
    return true;
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

void StagingPool::Return(std::byte* piece) {
  const auto index = static_cast<uint64_t>(piece - base()) / block_bytes_;
  if (index < blocks_.size()) {
    Give(&blocks_[index]);
  } else {
    GiveCell(piece);
  }
}

void StagingPool::Exhaust() {
  exhausted_ = true;
  free_.swap(kept_back_);
}

void StagingPool::Replenish() {
  exhausted_ = false;
  for (auto& list : kept_back_) {
    for (StagingBlock* block : std::exchange(list, {})) {
      Give(block);
    }
  }
}

bool StagingPool::Close() {
  for (StagingBlock& block : blocks_) {
    (void)Release(&block);
  }
  return pinning_ == 0 && std::none_of(blocks_.begin(), blocks_.end(),
                                       [](const StagingBlock& block) { return block.registered; });
}

uint32_t StagingPool::pieces() const { return static_cast<uint32_t>(blocks_.size()) + kCells; }

uint32_t StagingPool::busy() const {
  if (!complete_) {
    return 0;
  }
  return static_cast<uint32_t>(blocks_.size() - free_[0].size() - free_[1].size());
}

}  // namespace ferry::daemon

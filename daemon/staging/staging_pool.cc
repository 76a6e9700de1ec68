#include "daemon/staging/staging_pool.h"

#include <algorithm>
#include <utility>

#include "shm/layout/lane_layout.h"

namespace ferry::daemon {

StatusOr<std::unique_ptr<StagingPool>> StagingPool::Create(transport::Transport& transport,
                                                           uint64_t block_bytes, uint32_t blocks,
                                                           const SettleMemory& settle) {
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
  std::unique_ptr<StagingPool> pool(
      new StagingPool(transport, std::move(*fd), std::move(*mapping), block_bytes, blocks));
  for (StagingBlock& block : pool->blocks_) {
    if (Status status = pool->Register(&block); !status.ok()) {
      pool->Close();
      return status;
    }
    pool->Give(&block);
  }
  return pool;
}

StagingPool::StagingPool(transport::Transport& transport, UniqueFd fd, shm::Mapping mapping,
                         uint64_t block_bytes, uint32_t blocks)
    : transport_(transport),
      fd_(std::make_shared<UniqueFd>(std::move(fd))),
      mapping_(std::move(mapping)),
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

Status StagingPool::Register(StagingBlock* block) {
  // Only what leaves is read by peers.
  const auto access = block->use == StagingUse::kOutgoing ? transport::Access::kRemoteRead
                                                          : transport::Access::kLocal;
  StatusOr<transport::MemoryRegion> region =
      transport_.RegisterMemory(block->base, block_bytes_, access);
  if (!region.ok()) {
    return region.status();
  }
  block->registration = *region;
  block->registered = true;
  return {};
}

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
  tainted_.push_back(block);
  Recycle();
}

void StagingPool::Recycle() {
  std::erase_if(tainted_, [this](StagingBlock* block) {
    if (block->registered) {
      block->registered = !transport_.DeregisterMemory(block->registration.handle).ok();
    }
    if (block->registered || !Register(block).ok()) {
      return false;  // held still, or the NIC takes no registration now: another time
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

void StagingPool::Replenish() {
  for (auto& list : kept_back_) {
    for (StagingBlock* block : std::exchange(list, {})) {
      Give(block);
    }
  }
}

bool StagingPool::Close() {
  for (StagingBlock& block : blocks_) {
    if (block.registered) {
      block.registered =
          transport_.DeregisterMemory(block.registration.handle).code() == ErrorCode::kWouldBlock;
    }
  }
  return std::none_of(blocks_.begin(), blocks_.end(),
                      [](const StagingBlock& block) { return block.registered; });
}

uint32_t StagingPool::pieces() const { return static_cast<uint32_t>(blocks_.size()) + kCells; }

uint32_t StagingPool::busy() const {
  return static_cast<uint32_t>(blocks_.size() - free_[0].size() - free_[1].size());
}

}  // namespace ferry::daemon

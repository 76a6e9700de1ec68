#include "daemon/staging/staging_pool.h"

#include <sys/mman.h>

#include <cerrno>

namespace ferry::daemon {

StatusOr<std::unique_ptr<StagingPool>> StagingPool::Create(transport::Transport& transport,
                                                           uint64_t block_bytes, uint32_t blocks) {
  if (blocks < 2 || block_bytes == 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "staging needs at least 2 blocks, one for each direction (staging_blocks is " +
                      std::to_string(blocks) + ")");
  }
  const uint64_t size_bytes = block_bytes * blocks;
  void* base = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, /*fd=*/-1, 0);
  if (base == MAP_FAILED) {
    return StatusFromErrno(errno, "mmap of " + std::to_string(size_bytes) +
                                      " bytes for staging_blocks of staging_block_bytes");
  }
  std::unique_ptr<StagingPool> pool(
      new StagingPool(transport, static_cast<std::byte*>(base), block_bytes, blocks));
  for (StagingBlock& block : pool->blocks_) {
    FERRY_RETURN_IF_ERROR(pool->Register(&block));
    pool->Give(&block);
  }
  return pool;
}

StagingPool::StagingPool(transport::Transport& transport, std::byte* base, uint64_t block_bytes,
                         uint32_t blocks)
    : transport_(transport), base_(base), block_bytes_(block_bytes), blocks_(blocks) {
  for (uint32_t i = 0; i < blocks; ++i) {
    blocks_[i].base = base + i * block_bytes;
    blocks_[i].use = i % 2 == 0 ? StagingUse::kOutgoing : StagingUse::kIncoming;
  }
  for (auto& list : free_) {
    list.reserve(blocks);
  }
  tainted_.reserve(blocks);
}

StagingPool::~StagingPool() { munmap(base_, block_bytes_ * blocks_.size()); }

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

uint32_t StagingPool::busy() const {
  return static_cast<uint32_t>(blocks_.size() - free_[0].size() - free_[1].size());
}

}  // namespace ferry::daemon

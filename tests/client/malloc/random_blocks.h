// Random calls of malloc and its kin, each block filled with a pattern of its own and checked when
// it is resized or freed. The records of the blocks lie in memory that is not malloc's.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace ferry::malloc_heap {

class RandomBlocks {
 public:
  explicit RandomBlocks(uint64_t seed) : state_(seed) {
    void* const memory = mmap(nullptr, kBlocks * sizeof(Block), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    blocks_ = memory == MAP_FAILED ? nullptr : static_cast<Block*>(memory);
  }
  ~RandomBlocks() {
    for (size_t i = 0; i < kBlocks; ++i) {
      free(blocks_[i].address);
    }
    munmap(blocks_, kBlocks * sizeof(Block));
  }
  RandomBlocks(const RandomBlocks&) = delete;
  RandomBlocks& operator=(const RandomBlocks&) = delete;

  // One call, or several and a look at all blocks. False: a block was not what it has to be.
  bool Step() {
    Block& block = blocks_[Next() % kBlocks];
    if (block.address == nullptr) {
      return Allocate(block);
    }
    return Next() % 4 == 0 ? Resize(block) : Free(block);
  }

  bool Steps(int calls) {
    for (int i = 0; i < calls; ++i) {
      if (!Step()) {
        return false;
      }
    }
    return CheckAll();
  }

  // Returns true if every block is intact.
  bool CheckAll() const {
    for (size_t i = 0; i < kBlocks; ++i) {
      if (blocks_[i].address != nullptr && !IsIntact(blocks_[i], blocks_[i].size_bytes)) {
        return false;
      }
    }
    return true;
  }

 private:
  struct Block {
    unsigned char* address;
    size_t size_bytes;
    unsigned char pattern;
  };
  static constexpr size_t kBlocks = 4096;
  static constexpr size_t kEdgeBytes = 64;  // of large blocks the ends, and a byte of each page

  uint64_t Next() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL >> 16;
  }

  size_t RandomSize() {
    switch (Next() % 64) {
      case 0:
        return Next() % (size_t{3} << 20);
      case 1:
      case 2:
        return Next() % (size_t{200} << 10);
      default:
        return Next() % 3000;
    }
  }

  template <typename Visit>
  static void ForEachByte(size_t size_bytes, Visit&& visit) {
    for (size_t i = 0; i < size_bytes;) {
      visit(i);
      const bool at_edge = i < kEdgeBytes || i + kEdgeBytes >= size_bytes;
      i = at_edge ? i + 1
                  : (i + 4096 < size_bytes - kEdgeBytes ? i + 4096 : size_bytes - kEdgeBytes);
    }
  }

  static unsigned char ByteOf(const Block& block, size_t i) {
    return static_cast<unsigned char>(block.pattern + i * 31);
  }

  void Fill(Block& block) {
    block.pattern = static_cast<unsigned char>(Next());
    ForEachByte(block.size_bytes, [&](size_t i) { block.address[i] = ByteOf(block, i); });
  }

  // Of the first `size_bytes`, those that Fill has written when the block had its own size.
  static bool IsIntact(const Block& block, size_t size_bytes) {
    bool intact = true;
    ForEachByte(block.size_bytes, [&](size_t i) {
      intact = intact && (i >= size_bytes || block.address[i] == ByteOf(block, i));
    });
    return intact;
  }

  static bool IsZero(const unsigned char* bytes, size_t size_bytes) {
    return size_bytes == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size_bytes - 1) == 0);
  }

  bool Allocate(Block& block) {
    block.size_bytes = RandomSize();
    const uint64_t way = Next() % 8;
    size_t alignment = 16;
    if (way == 0) {
      block.address = static_cast<unsigned char*>(calloc(1, block.size_bytes));
      if (block.address == nullptr || !IsZero(block.address, block.size_bytes)) {
        return false;
      }
    } else if (way == 1) {
      alignment = size_t{16} << Next() % 12;
      void* aligned = nullptr;
      if (posix_memalign(&aligned, alignment, block.size_bytes) != 0) {
        return false;
      }
      block.address = static_cast<unsigned char*>(aligned);
    } else {
      block.address = static_cast<unsigned char*>(malloc(block.size_bytes));
    }
    const size_t least = block.size_bytes < 16 ? 8 : alignment;
    if (block.address == nullptr || reinterpret_cast<uintptr_t>(block.address) % least != 0) {
      return false;
    }
    Fill(block);
    return true;
  }

  bool Resize(Block& block) {
    const size_t size_bytes = RandomSize() + 1;
    const size_t kept = size_bytes < block.size_bytes ? size_bytes : block.size_bytes;
    auto* const address = static_cast<unsigned char*>(realloc(block.address, size_bytes));
    if (address == nullptr) {
      return false;
    }
    block.address = address;
    if (!IsIntact(block, kept)) {
      return false;
    }
    block.size_bytes = size_bytes;
    Fill(block);
    return true;
  }

  static bool Free(Block& block) {
    const bool intact = IsIntact(block, block.size_bytes);
    free(block.address);
    block.address = nullptr;
    return intact;
  }

  uint64_t state_;
  Block* blocks_ = nullptr;
};

}  // namespace ferry::malloc_heap

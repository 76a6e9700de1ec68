// Two sides of a partitioned message in plain memory, whose kernels (ferry/device/partitioned.h)
// reach each other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ferry/device/partitioned.h"

namespace ferry::device {

template <typename T>
uint64_t AddressOf(T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

struct Sizes {
  int partitions = 8;
  uint32_t per_unit = 4;
  uint32_t bytes = 24;         // of a partition
  int receive_partitions = 0;  // 0: as many
  uint32_t pieces = 1;         // of a partition, where per_unit is 1
};

// A send and a receive whose kernels reach each other.
class Pair {
 public:
  explicit Pair(const Sizes& shape, uint32_t way = FERRY_PARTITIONED_BY_KERNEL)
      : shape_(shape),
        units_((static_cast<uint32_t>(shape.partitions) + shape.per_unit - 1) / shape.per_unit),
        send_memory_((sizeof(MPIX_Prequest_object) + units_ * 8) / 8),
        state_memory_((sizeof(ferry_partitioned_state) + units_ * sizeof(ferry_partitioned_unit)) /
                      8),
        words_(units_),
        arrived_(units_),
        source_(static_cast<size_t>(shape.partitions) * shape.bytes),
        destination_(source_.size()) {
    MPIX_Prequest_object& send = *this->send();
    send.version = FERRY_PARTITIONED_VERSION;
    send.kind = FERRY_PARTITIONED_SEND;
    send.partitions = static_cast<uint32_t>(shape.partitions);
    send.sender_partitions = send.partitions;
    send.per_unit = shape.per_unit;
    send.pieces = shape.pieces;
    send.way = way;
    send.has_atomics = 1;
    send.state = AddressOf(state_memory_.data());
    send.arrived = AddressOf(arrived_.data());
    send.partition_bytes = shape.bytes;
    send.source = AddressOf(source_.data());
    send.destination = AddressOf(destination_.data());
    send.words = AddressOf(words_.data());
    send.word_stride = sizeof(ferry_partitioned_words);
    send.cleared = AddressOf(&cleared_);
    receive_ = send;
    receive_.kind = FERRY_PARTITIONED_RECEIVE;
    receive_.state = AddressOf(&receive_state_);
    if (shape.receive_partitions != 0) {
      receive_.partitions = static_cast<uint32_t>(shape.receive_partitions);
    }
  }

  MPIX_Prequest send() { return reinterpret_cast<MPIX_Prequest_object*>(send_memory_.data()); }
  MPIX_Prequest receive() { return &receive_; }
  ferry_partitioned_state& state() { return *ferry_partitioned_state_of(send()); }
  ferry_partitioned_state& receive_state() { return receive_state_; }
  uint32_t units() const { return units_; }
  ferry_device_u64& counter(uint32_t unit) {
    return reinterpret_cast<ferry_device_u64*>(
        send_memory_.data())[sizeof(MPIX_Prequest_object) / 8 + unit];
  }
  ferry_partitioned_words& words(uint32_t unit) { return words_[unit]; }
  ferry_device_u64& arrived(uint32_t unit) { return arrived_[unit]; }
  uint64_t full(uint32_t unit) { return ferry_partitioned_full(send(), unit); }
  ferry_device_u64& cleared() { return cleared_; }
  const std::vector<uint8_t>& source() const { return source_; }
  const std::vector<uint8_t>& destination() const { return destination_; }

  void Start(uint64_t round, bool is_cleared = true) {
    send()->round = round;
    receive_.round = round;
    if (is_cleared) {
      cleared_ = round;
    }
  }
  uint8_t ByteOf(uint64_t round, int partition) const {
    return static_cast<uint8_t>(round * 37 + static_cast<uint64_t>(partition) * 11 + 1);
  }
  // The calling thread's part of a partition's bytes.
  void Fill(uint64_t round, int partition, const ferry_device_crew& crew) {
    uint8_t* const begin = source_.data() + static_cast<size_t>(partition) * shape_.bytes;
    for (uint32_t i = crew.thread; i < shape_.bytes; i += crew.count) {
      begin[i] = ByteOf(round, partition);
    }
  }
  bool IsThere(uint64_t round, int partition) const {
    const uint8_t* const begin =
        destination_.data() + static_cast<size_t>(partition) * shape_.bytes;
    return std::all_of(begin, begin + shape_.bytes,
                       [&](uint8_t byte) { return byte == ByteOf(round, partition); });
  }
  // As a host does that has taken all of a unit.
  void MoveByHost(uint32_t unit, uint64_t bits) {
    const uint64_t first = uint64_t{unit} * shape_.per_unit * shape_.bytes;
    const uint64_t part = shape_.bytes / shape_.pieces;
    for (uint32_t i = 0; i < 64; ++i) {
      if ((bits >> i & 1) != 0) {
        std::memcpy(destination_.data() + first + i * part, source_.data() + first + i * part,
                    part);
      }
    }
    ferry_device_fetch_add(&arrived_[unit], bits);
  }
  // As a host does that looks for what is ready: true if it has moved something.
  bool TakeByHost(uint32_t unit, uint64_t round) {
    const uint64_t base = (round - 1) * full(unit);
    const uint64_t ready = ferry_device_load_acquire(&words_[unit].ready);
    const uint64_t taken = ferry_device_load_acquire(&words_[unit].taken);
    const uint64_t bits = (ready - base) & ~(taken - base);
    if (bits == 0 ||
        ferry_device_compare_exchange(&words_[unit].taken, taken, taken + bits) != taken) {
      return false;
    }
    MoveByHost(unit, bits);
    return true;
  }
  void ExpectRoundOver(uint64_t round) {
    for (uint32_t unit = 0; unit < units_; ++unit) {
      EXPECT_EQ(counter(unit), round * full(unit)) << "unit " << unit;
      EXPECT_EQ(words(unit).ready, round * full(unit)) << "unit " << unit;
      EXPECT_EQ(words(unit).taken, round * full(unit)) << "unit " << unit;
      EXPECT_EQ(arrived(unit), round * full(unit)) << "unit " << unit;
    }
    for (int i = 0; i < shape_.partitions; ++i) {
      EXPECT_TRUE(IsThere(round, i)) << "partition " << i;
    }
    EXPECT_EQ(state().noted, 0u);
  }

 private:
  const Sizes shape_;
  const uint32_t units_;
  std::vector<ferry_device_u64> send_memory_;
  std::vector<ferry_device_u64> state_memory_;
  std::vector<ferry_partitioned_words> words_;
  std::vector<ferry_device_u64> arrived_;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> destination_;
  ferry_device_u64 cleared_ = 0;
  MPIX_Prequest_object receive_{};
  ferry_partitioned_state receive_state_{};
};

}  // namespace ferry::device

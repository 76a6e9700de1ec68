// Ranks whose one-sided operations with ranks of other nodes the test asks for: it pushes the
// commands that the client library would.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {

class ProgressOneSidedTest : public PlaneTest {
 protected:
  // A command about the heap of `to`. The test says the rest.
  struct Wish {
    shm::Descriptor command{};
    shm::OneSidedCommand words{};
  };
  static Wish About(uint32_t to, shm::OneSidedOperation operation, uint64_t offset,
                    uint64_t size_bytes = 0) {
    Wish wish;
    wish.command.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
    wish.command.destination = to;
    wish.command.context = kHeapRegion;
    wish.command.size_bytes = size_bytes;
    wish.words.operation = static_cast<uint8_t>(operation);
    wish.words.width = 8;
    wish.words.answer = shm::kNoAnswer;
    wish.words.offset = offset;
    return wish;
  }
  static Wish InlinePut(uint32_t to, uint64_t offset, uint64_t value) {
    Wish wish = About(to, shm::OneSidedOperation::kPut, offset, sizeof(value));
    wish.words.operand = value;
    return wish;
  }
  static Wish AtomicOn(uint32_t to, shm::OneSidedOperation operation, uint64_t offset,
                       uint64_t operand, uint64_t compare = 0) {
    Wish wish = About(to, operation, offset);
    wish.words.operand = operand;
    wish.words.compare = compare;
    return wish;
  }

  void Say(uint32_t from, const Wish& asked, const std::vector<std::byte>* data = nullptr) {
    Wish wish = asked;
    shm::LaneProducer producer(&rank(from).session().layout()->to_daemon);
    ASSERT_TRUE(Eventually([&] { return producer.HasRoom(); }))
        << testing::PrintToString(told_.Get(&Told::violations));
    if (data != nullptr) {
      uint32_t cell = shm::kNoCell;
      ASSERT_TRUE(Eventually([&] { return (cell = producer.TryTakeCell()) != shm::kNoCell; }));
      std::memcpy(producer.Cell(cell), data->data(), data->size());
      wish.command.flags = shm::kFlagCell;
      wish.command.cell = static_cast<uint16_t>(cell);
    }
    std::memcpy(wish.command.payload, &wish.words, sizeof(wish.words));
    rank(from).PushToDaemon(wish.command);
  }

  uint64_t Done(uint32_t of_rank, uint32_t peer) {
    return shm::LoadAcquire(rank(of_rank).view().by_rank.one_sided[peer].done);
  }
  bool Comes(uint32_t of_rank, uint32_t peer, uint64_t number) {
    return Eventually([&] { return Done(of_rank, peer) >= number; });
  }
  // Says it, waits for the answer in that place, and returns its error.
  ErrorCode Ask(uint32_t from, const Wish& asked, uint16_t answer, uint64_t* value = nullptr) {
    Wish wish = asked;
    shm::AnswerLayout& words = rank(from).view().layout->answers[answer];
    wish.words.answer = answer;
    wish.words.serial = static_cast<uint16_t>(shm::LoadAcquire(words.serial) + 1);
    Say(from, wish);
    EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(words.serial) == wish.words.serial; }));
    if (value != nullptr) {
      *value = words.value;
    }
    return static_cast<ErrorCode>(words.error);
  }
  uint64_t& Word(uint32_t of_rank, uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(rank(of_rank).heap() + offset);
  }
  // The failures of which the rank was told so far.
  std::vector<shm::OneSidedFailure> Failures(uint32_t of_rank) {
    const shm::OneSidedFailures& failures = rank(of_rank).view().layout->failures[0];
    const uint64_t count = shm::LoadAcquire(failures.count);  // Pairs with OneSided::End.
    EXPECT_LE(count, shm::kFailures);
    return {failures.entries, failures.entries + std::min<uint64_t>(count, shm::kFailures)};
  }
  // The last failure, of those operations; returns how many there were.
  size_t ExpectFailure(uint32_t of_rank, uint32_t peer, uint64_t first, uint64_t last,
                       ErrorCode error) {
    EXPECT_TRUE(Comes(of_rank, peer, last));
    const std::vector<shm::OneSidedFailure> failures = Failures(of_rank);
    if (failures.empty()) {
      ADD_FAILURE() << "nothing has failed";
      return 0;
    }
    EXPECT_EQ(failures.back().peer, peer);
    EXPECT_EQ(failures.back().first, first);
    EXPECT_EQ(failures.back().last, last);
    EXPECT_EQ(static_cast<ErrorCode>(failures.back().error), error);
    return failures.size();
  }
  void ExpectViolation(uint32_t of_rank, const Wish& wish, const std::string& words) {
    Say(of_rank, wish);
    ASSERT_TRUE(Eventually([&] { return !told_.Get(&Told::violations).empty(); }));
    EXPECT_NE(told_.Get(&Told::violations).front().find(words), std::string::npos)
        << told_.Get(&Told::violations).front();
  }
};

}  // namespace ferry::daemon

// Operations in the memory of other ranks, of the own node and of others: every rank does each
// thing with every rank, itself included, and checks every byte.
#include "ferry/one_sided.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/api/front_end.h"
#include "ferry/one_sided.hpp"
#include "shm/atomic.h"
#include "tests/e2e/ranks/check.h"

namespace {

using ferry::ranks::Left;
using ferry::ranks::Right;

constexpr size_t kSizes[] = {1, 7, 8, 16, 17, 100, 8191, 8192, 8193, 100'000, 1 << 20};
constexpr size_t kLargest = 1 << 20;
constexpr size_t kWords = 4096;  // at the beginning of each rank's memory
constexpr size_t kWordBytes = kWords * sizeof(uint64_t);

int self = -1;
int ranks = 0;
// Each rank's: words, then a field for each rank to put to.
uint64_t* words = nullptr;
uint8_t* fields = nullptr;
std::vector<ferry_place> bases;  // of all ranks, by rank

ferry_place WordOf(int rank, size_t index) {
  ferry_place place = bases[static_cast<size_t>(rank)];
  place.offset += index * sizeof(uint64_t);
  return place;
}
ferry_place FieldOf(int rank, int of, size_t offset = 0) {
  ferry_place place = bases[static_cast<size_t>(rank)];
  place.offset += kWordBytes + static_cast<size_t>(of) * kLargest + offset;
  return place;
}
uint8_t* Field(int of) { return fields + static_cast<size_t>(of) * kLargest; }
uint64_t Await(const uint64_t& word, uint64_t wanted) {
  for (;;) {
    const uint64_t found = ferry::shm::LoadAcquire(word);
    if (found >= wanted) {
      return found;
    }
    sched_yield();
  }
}

void Clear() {
  std::memset(words, 0, kWordBytes + static_cast<size_t>(ranks) * kLargest);
  CHECK_OK(ferry_barrier());
}

// Allocates the memory, and tells all ranks where it is.
void Open() {
  self = ferry_rank();
  ranks = ferry_size();
  const size_t size_bytes = kWordBytes + static_cast<size_t>(ranks) * kLargest;
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(size_bytes, FERRY_MEMORY_HOST, 0, &memory));
  words = static_cast<uint64_t*>(memory);
  fields = static_cast<uint8_t*>(memory) + kWordBytes;
  bases.resize(static_cast<size_t>(ranks));
  CHECK_OK(ferry_locate(memory, size_bytes, &bases[static_cast<size_t>(self)]));
  CHECK_EQ(bases[static_cast<size_t>(self)].rank, self);
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (self + distance) % ranks;
    const int from = (self + ranks - distance) % ranks;
    ferry_request request;
    CHECK_OK(
        ferry_irecv(&bases[static_cast<size_t>(from)], sizeof(ferry_place), from, 1, &request));
    CHECK_OK(ferry_send(&bases[static_cast<size_t>(self)], sizeof(ferry_place), to, 1));
    CHECK_OK(ferry_wait(&request, nullptr));
  }
}

// ---- Puts and gets ------------------------------------------------------------------------------

uint64_t NameOf(int from, int to, size_t size_bytes) {
  return static_cast<uint64_t>(from * 1000 + to) << 32 | size_bytes;
}

void EverySizeIsPutAndGot() {
  std::vector<uint8_t> own(kLargest);
  for (const size_t size_bytes : kSizes) {
    for (int to = 0; to < ranks; ++to) {
      ferry::ranks::Fill(own.data(), size_bytes, NameOf(self, to, size_bytes));
      CHECK_OK(ferry_put(FERRY_CONTEXT_DEFAULT, FieldOf(to, self), own.data(), size_bytes));
      std::fill(own.begin(), own.end(), uint8_t{0});  // the source is free again
    }
    CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
    CHECK_OK(ferry_barrier());
    for (int from = 0; from < ranks; ++from) {
      CHECK_BYTES(Field(from), size_bytes, NameOf(from, self, size_bytes));
      CHECK_EQ(Field(from)[std::min(size_bytes, kLargest - 1)],
               size_bytes == kLargest
                   ? ferry::ranks::ByteOf(NameOf(from, self, size_bytes), kLargest - 1)
                   : 0);
      // The data that this rank has put there, and those of a third one.
      for (const int by : {self, (from + 1) % ranks}) {
        std::fill(own.begin(), own.end(), uint8_t{0});
        CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, own.data(), FieldOf(from, by), size_bytes));
        CHECK_BYTES(own.data(), size_bytes, NameOf(by, from, size_bytes));
      }
    }
    CHECK_OK(ferry_barrier());
    Clear();
  }
}

void ManyNonblockingGetsAreThereAfterQuiet() {
  constexpr size_t kGets = 300;
  for (size_t i = 0; i < kGets; ++i) {
    words[i] = static_cast<uint64_t>(self) << 32 | i;
  }
  CHECK_OK(ferry_barrier());
  std::vector<uint64_t> got(kGets * static_cast<size_t>(ranks));
  std::vector<uint8_t> long_one(kLargest);
  for (size_t i = 0; i < got.size(); ++i) {
    const int rank = static_cast<int>(i % static_cast<size_t>(ranks));
    CHECK_OK(ferry_get_nbi(FERRY_CONTEXT_DEFAULT, &got[i],
                           WordOf(rank, i / static_cast<size_t>(ranks)), sizeof(got[i])));
  }
  CHECK_OK(ferry_get_nbi(FERRY_CONTEXT_DEFAULT, long_one.data(), WordOf(Right(), 0), kWordBytes));
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK_EQ(got[i], (i % static_cast<size_t>(ranks)) << 32 | i / static_cast<size_t>(ranks));
  }
  uint64_t last = 0;
  std::memcpy(&last, long_one.data() + (kGets - 1) * sizeof(last), sizeof(last));
  CHECK_EQ(last, static_cast<uint64_t>(Right()) << 32 | (kGets - 1));
  CHECK_OK(ferry_barrier());
  Clear();
}

void StridedBlocksKeepTheirPlaces() {
  struct Shape {
    ptrdiff_t there, here;
    size_t block_bytes, blocks;
  };
  constexpr Shape kShapes[] = {{8, 8, 8, 1000},          {8, 24, 8, 3000},     {24, 8, 8, 1000},
                               {40, 16, 12, 500},        {64, -16, 16, 100},   {-64, 32, 5, 100},
                               {9000, 10'000, 8800, 40}, {100, 300, 100, 2000}};
  std::vector<uint8_t> own(kLargest);
  std::vector<uint8_t> back(kLargest);
  for (const Shape& shape : kShapes) {
    const auto begin = [&](ptrdiff_t stride) {
      return stride < 0 ? static_cast<size_t>(-stride) * (shape.blocks - 1) : 0;
    };
    ferry::ranks::Fill(own.data(), own.size(), NameOf(self, 7, shape.blocks));
    uint8_t* const here = own.data() + begin(shape.here);
    for (int to = 0; to < ranks; ++to) {
      CHECK_OK(ferry_iput(FERRY_CONTEXT_DEFAULT, FieldOf(to, self, begin(shape.there)), shape.there,
                          here, shape.here, shape.block_bytes, shape.blocks));
    }
    CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
    CHECK_OK(ferry_barrier());
    std::vector<uint8_t> wanted(kLargest);
    for (int from = 0; from < ranks; ++from) {
      ferry::ranks::Fill(own.data(), own.size(), NameOf(from, 7, shape.blocks));
      std::fill(wanted.begin(), wanted.end(), uint8_t{0});
      for (size_t i = 0; i < shape.blocks; ++i) {
        const auto n = static_cast<ptrdiff_t>(i);
        std::memcpy(wanted.data() + static_cast<ptrdiff_t>(begin(shape.there)) + n * shape.there,
                    here + n * shape.here, shape.block_bytes);
      }
      CHECK_EQ(std::memcmp(Field(from), wanted.data(), kLargest), 0);
      std::fill(back.begin(), back.end(), uint8_t{0});
      CHECK_OK(ferry_iget(FERRY_CONTEXT_DEFAULT, back.data() + begin(shape.here), shape.here,
                          FieldOf(from, self, begin(shape.there)), shape.there, shape.block_bytes,
                          shape.blocks));
      ferry::ranks::Fill(own.data(), own.size(), NameOf(self, 7, shape.blocks));
      for (size_t i = 0; i < shape.blocks; ++i) {
        const ptrdiff_t at =
            static_cast<ptrdiff_t>(begin(shape.here)) + static_cast<ptrdiff_t>(i) * shape.here;
        CHECK_EQ(std::memcmp(back.data() + at, own.data() + at, shape.block_bytes), 0);
      }
    }
    CHECK_OK(ferry_barrier());
    Clear();
  }
}

// ---- Atomic operations --------------------------------------------------------------------------

void EveryAtomicOperationOfBothWidths() {
  struct Case {
    ferry_atomic_operation operation;
    uint64_t after;
  };
  constexpr uint64_t kBefore = 0b1100;
  constexpr uint64_t kOperand = 0b0110;
  constexpr Case kCases[] = {
      {FERRY_ATOMIC_FETCH, kBefore},          {FERRY_ATOMIC_SET, kOperand},
      {FERRY_ATOMIC_SWAP, kOperand},          {FERRY_ATOMIC_COMPARE_SWAP, kOperand},
      {FERRY_ATOMIC_ADD, kBefore + kOperand}, {FERRY_ATOMIC_AND, kBefore & kOperand},
      {FERRY_ATOMIC_OR, kBefore | kOperand},  {FERRY_ATOMIC_XOR, kBefore ^ kOperand}};
  for (int to = 0; to < ranks; ++to) {
    for (const int width : {4, 8}) {
      ferry_place word = WordOf(to, static_cast<size_t>(self));
      // The upper half of the eight bytes, so that a step too wide shows.
      word.offset += width == 4 ? 4 : 0;
      const uint64_t rest = width == 4 ? 0x1234'5678 : 0;
      const uint64_t shift = width == 4 ? 32 : 0;
      const auto check = [&](uint64_t wanted) {
        uint64_t now = 0;
        CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, &now, WordOf(to, static_cast<size_t>(self)), 8));
        CHECK_EQ(now, wanted << shift | rest);
      };
      const auto start = [&] {
        const uint64_t value = kBefore << shift | rest;
        CHECK_OK(
            ferry_put(FERRY_CONTEXT_DEFAULT, WordOf(to, static_cast<size_t>(self)), &value, 8));
        CHECK_OK(ferry_fence(FERRY_CONTEXT_DEFAULT));
      };
      for (const Case& one : kCases) {
        uint64_t found = 0;
        start();
        CHECK_OK(ferry_atomic_fetch(FERRY_CONTEXT_DEFAULT, one.operation, word, width, kOperand,
                                    kBefore, &found));
        CHECK_EQ(found, kBefore);
        check(one.after);
        start();
        found = 0;
        CHECK_OK(ferry_atomic_fetch_nbi(FERRY_CONTEXT_DEFAULT, one.operation, word, width, kOperand,
                                        kBefore, &found));
        CHECK_OK(ferry_quiet_rank(FERRY_CONTEXT_DEFAULT, to));
        CHECK_EQ(found, kBefore);
        check(one.after);
        start();
        CHECK_OK(
            ferry_atomic(FERRY_CONTEXT_DEFAULT, one.operation, word, width, kOperand, kBefore));
        check(one.after);
      }
      start();  // and a compare-swap that finds something else
      uint64_t found = 0;
      CHECK_OK(ferry_atomic_fetch(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_COMPARE_SWAP, word, width,
                                  kOperand, kBefore + 1, &found));
      CHECK_EQ(found, kBefore);
      check(kBefore);
    }
  }
  CHECK_OK(ferry_barrier());
  Clear();
}

// Rank 0 counts by its CPU alone, all others by the library: nothing is lost, and no two find the
// same.
void CountsFromEverywhereAddUp() {
  constexpr uint64_t kTimes = 1500;
  std::vector<uint64_t> found(kTimes);
  for (uint64_t i = 0; i < kTimes; ++i) {
    if (self == 0) {
      found[i] = ferry::shm::FetchAdd(words[0], 1, std::memory_order_relaxed);
    } else if (i % 2 == 0) {
      CHECK_OK(ferry_atomic_fetch(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, WordOf(0, 0), 8, 1, 0,
                                  &found[i]));
    } else {
      CHECK_OK(ferry_atomic_fetch_nbi(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, WordOf(0, 0), 8, 1,
                                      0, &found[i]));
    }
    CHECK_OK(ferry_atomic(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, WordOf(0, 1), 4, 3, 0));
  }
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_barrier());
  const auto all = kTimes * static_cast<uint64_t>(ranks);
  uint64_t now = 0;
  CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, &now, WordOf(0, 0), 8));
  CHECK_EQ(now, all);
  CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, &now, WordOf(0, 1), 8));
  CHECK_EQ(now, 3 * all);
  const std::set<uint64_t> different(found.begin(), found.end());
  CHECK_EQ(different.size(), kTimes);
  CHECK_EQ(*different.rbegin() < all, true);
  CHECK_OK(ferry_barrier());
  Clear();
}

// A lock by compare-swap around a counter that is got and put.
void ALockHolds() {
  constexpr uint64_t kTimes = 50;
  for (uint64_t i = 0; i < kTimes; ++i) {
    uint64_t holder = 0;
    do {
      CHECK_OK(ferry_atomic_fetch(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_COMPARE_SWAP, WordOf(0, 0), 8,
                                  static_cast<uint64_t>(self) + 1, 0, &holder));
      if (holder != 0) {
        sched_yield();
      }
    } while (holder != 0);
    uint64_t count = 0;
    CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, &count, WordOf(0, 1), 8));
    ++count;
    CHECK_OK(ferry_put(FERRY_CONTEXT_DEFAULT, WordOf(0, 1), &count, 8));
    CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
    CHECK_OK(ferry_atomic(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_SET, WordOf(0, 0), 8, 0, 0));
  }
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_barrier());
  uint64_t count = 0;
  CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, &count, WordOf(0, 1), 8));
  CHECK_EQ(count, kTimes * static_cast<uint64_t>(ranks));
  CHECK_OK(ferry_barrier());
  Clear();
}

// ---- Order --------------------------------------------------------------------------------------

// Each rank puts to its right neighbour, which acknowledges, as a signal, what it has checked.
void ASignalComesAfterItsData() {
  constexpr size_t kSignalSizes[] = {0, 1, 8, 100, 8192, 8193, 40'000};
  std::vector<uint8_t> own(40'000);
  uint64_t sent = 0;
  for (int round = 0; round < 30; ++round) {
    for (const size_t size_bytes : kSignalSizes) {
      ++sent;
      ferry::ranks::Fill(own.data(), size_bytes, sent);
      const bool is_add = sent % 2 == 0;
      CHECK_OK(ferry_put_signal(FERRY_CONTEXT_DEFAULT, FieldOf(Right(), self), own.data(),
                                size_bytes, is_add ? FERRY_SIGNAL_ADD : FERRY_SIGNAL_SET,
                                WordOf(Right(), 0), is_add ? 1 : sent));
      CHECK_EQ(Await(words[0], sent), sent);
      CHECK_BYTES(Field(Left()), size_bytes, sent);
      CHECK_OK(ferry_put_signal(FERRY_CONTEXT_DEFAULT, FieldOf(Left(), self), nullptr, 0,
                                FERRY_SIGNAL_SET, WordOf(Left(), 1), sent));
      CHECK_EQ(Await(words[1], sent), sent);
    }
  }
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_barrier());
  Clear();
}

void AFenceOrders() {
  constexpr uint64_t kRounds = 200;
  std::vector<uint8_t> own(20'000);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    ferry::ranks::Fill(own.data(), own.size(), round);
    CHECK_OK(ferry_put(FERRY_CONTEXT_DEFAULT, FieldOf(Right(), self), own.data(), own.size()));
    CHECK_OK(ferry_fence(FERRY_CONTEXT_DEFAULT));
    CHECK_OK(ferry_put(FERRY_CONTEXT_DEFAULT, WordOf(Right(), 0), &round, sizeof(round)));
    CHECK_EQ(Await(words[0], round), round);
    CHECK_BYTES(Field(Left()), own.size(), round);
    CHECK_OK(ferry_atomic(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_SET, WordOf(Left(), 1), 8, round, 0));
    CHECK_EQ(Await(words[1], round), round);
  }
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_barrier());
  Clear();
}

// A signal goes round; whoever it has not reached yet rests. A rest that nothing ended would take
// so long that all together would take four times the limit.
void ASignalEndsARest() {
  constexpr uint64_t kRounds = 40;
  constexpr uint64_t kLongestNs = 1'000'000'000;
  ferry::client::FrontEnd& front_end = *ferry_front_end(ferry::client::kFrontEndVersion);
  const auto begun = std::chrono::steady_clock::now();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const auto pass_on = [&] {
      CHECK_OK(ferry_put_signal(FERRY_CONTEXT_DEFAULT, FieldOf(Right(), self), nullptr, 0,
                                FERRY_SIGNAL_SET, WordOf(Right(), 0), round));
    };
    if (self == 0) {
      pass_on();
    }
    while (ferry::shm::LoadAcquire(words[0]) < round) {
      front_end.peers->Rest(kLongestNs);
    }
    if (self != 0) {
      pass_on();
    }
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  CHECK_EQ(took < std::chrono::nanoseconds(kRounds * kLongestNs / 4), true);
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_barrier());
  Clear();
}

// ---- Contexts and threads -----------------------------------------------------------------------

void HundredsOfContexts() {
  constexpr size_t kContexts = 300;
  std::vector<ferry_context> contexts(kContexts);
  for (ferry_context& context : contexts) {
    CHECK_OK(ferry_context_create(&context));
  }
  for (size_t i = 0; i < kContexts; ++i) {
    for (int to = 0; to < ranks; ++to) {
      const uint64_t value = i + 1;
      ferry_place place = FieldOf(to, self, i * sizeof(value));
      CHECK_OK(ferry_put(contexts[i], place, &value, sizeof(value)));
    }
  }
  for (size_t i = 0; i < kContexts; ++i) {
    CHECK_OK(ferry_quiet(contexts[i]));
    uint64_t value = 0;
    CHECK_OK(ferry_get(contexts[i], &value, FieldOf(Right(), self, i * sizeof(value)), 8));
    CHECK_EQ(value, i + 1);
    ferry_context gone = contexts[i];
    CHECK_OK(ferry_context_destroy(&contexts[i]));
    CHECK_EQ(contexts[i], FERRY_CONTEXT_DEFAULT);
    CHECK_REFUSED(ferry_quiet(gone), FERRY_ERR_ARGUMENT,
                  "ferry_quiet: the handle names no context");
  }
  CHECK_OK(ferry_barrier());
  Clear();
}

void ThreadsUseContextsOfTheirOwnAndTheDefaultOne() {
  constexpr size_t kThreads = 4;
  constexpr uint64_t kTimes = 300;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      ferry::Context own;
      std::vector<uint8_t> sent(20'000);
      std::vector<uint8_t> got(sent.size());
      const size_t at = t * sent.size();
      for (uint64_t i = 0; i < kTimes; ++i) {
        const size_t size_bytes = kSizes[i % 9];
        const int to =
            static_cast<int>((static_cast<uint64_t>(self) + i) % static_cast<uint64_t>(ranks));
        ferry::ranks::Fill(sent.data(), size_bytes, i * kThreads + t);
        own.Put(FieldOf(to, self, at), sent.data(), size_bytes);
        CHECK_OK(ferry_atomic(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, WordOf(to, 0), 8, 1, 0));
        (void)own.FetchAdd<uint32_t>(WordOf(to, 1), 1);
        own.Quiet();
        own.Get(got.data(), FieldOf(to, self, at), size_bytes);
        CHECK_BYTES(got.data(), size_bytes, i * kThreads + t);
        if (i % 50 == 0) {
          CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));
  CHECK_OK(ferry_barrier());
  // Each rank has gone round all of them equally often.
  CHECK_EQ(kTimes % static_cast<uint64_t>(ranks), 0);
  CHECK_EQ(words[0], kThreads * kTimes);
  CHECK_EQ(words[1], kThreads * kTimes);
  CHECK_OK(ferry_barrier());
  Clear();
}

// ---- Mistakes -----------------------------------------------------------------------------------

// An operation that cannot be carried out fails by itself or by the quiet that follows.
#define CHECK_FAILS(call, error, text)                                                     \
  do {                                                                                     \
    int check_result = (call);                                                             \
    check_result =                                                                         \
        check_result == FERRY_SUCCESS ? ferry_quiet(FERRY_CONTEXT_DEFAULT) : check_result; \
    CHECK_REFUSED(check_result, error, text);                                              \
    CHECK_OK(ferry_quiet(FERRY_CONTEXT_DEFAULT));                                          \
  } while (false)

void WhatIsNotThereFailsByName() {
  uint64_t value = 1;
  for (int to = 0; to < ranks; ++to) {
    const std::string who = "rank " + std::to_string(to) + " has no such segment";
    ferry_place unknown = WordOf(to, 0);
    unknown.segment = 4711;
    ferry_place beyond = WordOf(to, 0);
    beyond.offset = uint64_t{1} << 50;
    ferry_place wraps = WordOf(to, 0);
    wraps.offset = UINT64_MAX - 7;
    for (const ferry_place& place : {unknown, beyond, wraps}) {
      CHECK_FAILS(ferry_put(FERRY_CONTEXT_DEFAULT, place, &value, 8), FERRY_ERR_BUFFER,
                  who.c_str());
      CHECK_FAILS(ferry_put_signal(FERRY_CONTEXT_DEFAULT, WordOf(to, 1), &value, 8,
                                   FERRY_SIGNAL_SET, place, 1),
                  FERRY_ERR_BUFFER, who.c_str());
      CHECK_REFUSED(ferry_get(FERRY_CONTEXT_DEFAULT, &value, place, 8), FERRY_ERR_BUFFER,
                    who.c_str());
      CHECK_FAILS(ferry_get_nbi(FERRY_CONTEXT_DEFAULT, &value, place, 8), FERRY_ERR_BUFFER,
                  who.c_str());
      CHECK_REFUSED(
          ferry_atomic_fetch(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, place, 8, 1, 0, &value),
          FERRY_ERR_BUFFER, who.c_str());
      CHECK_FAILS(ferry_atomic(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, place, 8, 1, 0),
                  FERRY_ERR_BUFFER, who.c_str());
    }
    CHECK_OK(ferry_get(FERRY_CONTEXT_DEFAULT, &value, WordOf(to, 1), 8));
    CHECK_EQ(value, 0);  // the put whose signal was refused has stored nothing
    ferry_place odd = WordOf(to, 0);
    odd.offset += 4;
    CHECK_REFUSED(ferry_atomic(FERRY_CONTEXT_DEFAULT, FERRY_ATOMIC_ADD, odd, 8, 1, 0),
                  FERRY_ERR_ARGUMENT, "does not begin at a multiple of its width");
    CHECK_REFUSED(
        ferry_put_signal(FERRY_CONTEXT_DEFAULT, WordOf(to, 0), &value, 8, FERRY_SIGNAL_SET, odd, 1),
        FERRY_ERR_ARGUMENT, "does not begin at a multiple of its width");
  }
  CHECK_OK(ferry_barrier());
  Clear();
}

void ArgumentsAreChecked() {
  uint64_t value = 1;
  const ferry_place word = WordOf(Right(), 0);
  ferry_place nobody = word;
  ferry_place place;
  ferry_context none = FERRY_CONTEXT_DEFAULT;
  nobody.rank = ranks;
  CHECK_REFUSED(ferry_put(0, nobody, &value, 8), FERRY_ERR_RANK, "ferry_put: rank ");
  nobody.rank = -1;
  CHECK_REFUSED(ferry_get(0, &value, nobody, 8), FERRY_ERR_RANK, "ferry_get: rank -1");
  CHECK_REFUSED(ferry_quiet_rank(0, ranks), FERRY_ERR_RANK, "ferry_quiet_rank: rank ");
  CHECK_REFUSED(ferry_put(0, word, nullptr, 8), FERRY_ERR_BUFFER, "the buffer is null but 8 bytes");
  CHECK_REFUSED(ferry_get_nbi(0, nullptr, word, 8), FERRY_ERR_BUFFER, "ferry_get_nbi: the buffer");
  CHECK_REFUSED(ferry_atomic(0, FERRY_ATOMIC_ADD, word, 3, 1, 0), FERRY_ERR_ARGUMENT,
                "the width is 3");
  CHECK_REFUSED(ferry_atomic(0, static_cast<ferry_atomic_operation>(2), word, 8, 1, 0),
                FERRY_ERR_ARGUMENT, "the operation is 2");
  CHECK_REFUSED(ferry_atomic_fetch(0, FERRY_ATOMIC_ADD, word, 8, 1, 0, nullptr), FERRY_ERR_ARGUMENT,
                "ferry_atomic_fetch: the address for the result is null");
  CHECK_REFUSED(ferry_put_signal(0, word, &value, 8, static_cast<ferry_signal_update>(0), word, 1),
                FERRY_ERR_ARGUMENT, "the update is 0");
  CHECK_REFUSED(ferry_put_signal(0, word, &value, 8, FERRY_SIGNAL_SET, WordOf(Left(), 0), 1),
                ranks <= 2 ? FERRY_SUCCESS : FERRY_ERR_RANK, ranks <= 2 ? "" : "but the signal");
  CHECK_REFUSED(ferry_iput(0, word, 8, &value, 8, SIZE_MAX / 2, 3), FERRY_ERR_ARGUMENT,
                "more than there can be");
  CHECK_REFUSED(ferry_locate(&value, 8, &place), FERRY_ERR_BUFFER, "take it from ferry_alloc");
  CHECK_REFUSED(ferry_locate(words, 8, nullptr), FERRY_ERR_ARGUMENT, "ferry_locate: the address");
  CHECK_REFUSED(ferry_context_create(nullptr), FERRY_ERR_ARGUMENT, "ferry_context_create");
  CHECK_REFUSED(ferry_context_destroy(&none), FERRY_ERR_ARGUMENT, "cannot be destroyed");
  CHECK_REFUSED(ferry_context_destroy(nullptr), FERRY_ERR_ARGUMENT, "the context is null");
  CHECK_REFUSED(ferry_put(uint64_t{5} << 32 | 9, word, &value, 8), FERRY_ERR_ARGUMENT,
                "names no context");
  CHECK_OK(ferry_put(0, word, nullptr, 0));
  CHECK_OK(ferry_iget(0, &value, 8, word, 8, 0, 3));
  CHECK_OK(ferry_quiet(0));
  CHECK_OK(ferry_barrier());
  Clear();
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_MULTIPLE, nullptr));
  Open();
  Clear();
  void (*const tests[])() = {EverySizeIsPutAndGot,
                             ManyNonblockingGetsAreThereAfterQuiet,
                             StridedBlocksKeepTheirPlaces,
                             EveryAtomicOperationOfBothWidths,
                             CountsFromEverywhereAddUp,
                             ALockHolds,
                             ASignalComesAfterItsData,
                             AFenceOrders,
                             ASignalEndsARest,
                             HundredsOfContexts,
                             ThreadsUseContextsOfTheirOwnAndTheDefaultOne,
                             WhatIsNotThereFailsByName,
                             ArgumentsAreChecked};
  for (auto test : tests) {
    test();
  }
  CHECK_OK(ferry_free(words));
  CHECK_OK(ferry_finalize());
  if (self == 0) {
    std::puts("one_sided: ok");
  }
  return 0;
}

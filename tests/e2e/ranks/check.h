// Checks for test programs that run as ranks: a failed one says where and ends the program with
// status 1.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "ferry/ferry.h"

namespace ferry::ranks {

[[noreturn]] inline void FailAt(const char* file, int line, const char* text, long long got,
                                long long wanted) {
  std::fprintf(stderr, "rank %d: %s:%d: %s is %lld, not %lld (last error: %s)\n", ferry_rank(),
               file, line, text, got, wanted, ferry_last_error());
  std::exit(1);
}

#define CHECK_EQ(expression, wanted)                                                    \
  do {                                                                                  \
    const auto check_got = static_cast<long long>(expression);                          \
    const auto check_wanted = static_cast<long long>(wanted);                           \
    if (check_got != check_wanted) {                                                    \
      ::ferry::ranks::FailAt(__FILE__, __LINE__, #expression, check_got, check_wanted); \
    }                                                                                   \
  } while (false)

#define CHECK_OK(expression) CHECK_EQ(expression, FERRY_SUCCESS)

// Checks that the call failed with that error, and says this.
inline void CheckRefused(int got, int wanted, const char* text, int line) {
  const bool says = std::string_view(ferry_last_error()).find(text) != std::string_view::npos;
  if (got != wanted || !says) {
    std::fprintf(stderr, "rank %d: line %d: %d instead of %d, or no \"%s\" in \"%s\"\n",
                 ferry_rank(), line, got, wanted, text, ferry_last_error());
    std::exit(1);
  }
}
#define CHECK_REFUSED(call, wanted, text) ::ferry::ranks::CheckRefused(call, wanted, text, __LINE__)

// The neighbours in a ring of all ranks.
inline int Right() { return (ferry_rank() + 1) % ferry_size(); }
inline int Left() { return (ferry_rank() + ferry_size() - 1) % ferry_size(); }

// Bytes that tell which message they belong to, and where in it they are: eight at a time, since
// tests are compiled without optimisation.
inline uint64_t EightBytesOf(uint64_t message, uint64_t eighth) {
  const uint64_t mixed = (message * 0x9e3779b97f4a7c15ULL + eighth) * 0xbf58476d1ce4e5b9ULL;
  return mixed ^ (mixed >> 29);
}

inline uint8_t ByteOf(uint64_t message, uint64_t index) {
  return static_cast<uint8_t>(EightBytesOf(message, index / 8) >> (index % 8 * 8));
}

inline void Fill(void* data, uint64_t size_bytes, uint64_t message) {
  for (uint64_t i = 0; i < size_bytes; i += 8) {
    const uint64_t bytes = EightBytesOf(message, i / 8);
    std::memcpy(static_cast<uint8_t*>(data) + i, &bytes, std::min<uint64_t>(8, size_bytes - i));
  }
}

// Checks the first `size_bytes`.
inline void CheckBytes(const void* data, uint64_t size_bytes, uint64_t message, const char* file,
                       int line) {
  for (uint64_t i = 0; i < size_bytes; i += 8) {
    const uint64_t bytes = EightBytesOf(message, i / 8);
    if (std::memcmp(static_cast<const uint8_t*>(data) + i, &bytes,
                    std::min<uint64_t>(8, size_bytes - i)) != 0) {
      std::fprintf(stderr, "rank %d: %s:%d: message %llu is wrong between bytes %llu and %llu\n",
                   ferry_rank(), file, line, static_cast<unsigned long long>(message),
                   static_cast<unsigned long long>(i), static_cast<unsigned long long>(i + 7));
      std::exit(1);
    }
  }
}

#define CHECK_BYTES(data, size_bytes, message) \
  ::ferry::ranks::CheckBytes(data, size_bytes, message, __FILE__, __LINE__)

inline uint64_t CounterNamed(const char* name) {
  for (int i = 0; i < ferry_counter_count(); ++i) {
    const char* known = ferry_counter_name(i);
    if (std::string_view(known) == name) {
      return ferry_counter_value(i);
    }
  }
  std::fprintf(stderr, "no counter is called %s\n", name);
  std::exit(1);
}

inline void PrintLinkCounters() {
  for (const char* name : {"link_messages_sent", "link_messages_received", "link_errors"}) {
    std::printf("%s: %" PRIu64 "\n", name, CounterNamed(name));
  }
}

inline std::vector<int> PeersOfOtherNodes() {
  std::vector<int> peers;
  for (int rank = 0; rank < ferry_size(); ++rank) {
    if (ferry_node_of(rank) != ferry_node_of(ferry_rank())) {
      peers.push_back(rank);
    }
  }
  return peers;
}

}  // namespace ferry::ranks

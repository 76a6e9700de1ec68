// A machine in software whose memory orders no more than the C++ standard promises, for litmus
// tests of code that shares words. Neither x86 nor an emulator on it can show that an order is
// missing: both keep more orders than that, and so does a compiler that happens not to use its
// freedom.
//
// Each word has all the values that it ever had. A load takes any of them that the thread has not
// been told is out of date: by what it has read itself, or by an acquire that read a release.
// Sequentially consistent accesses see those before them, and fences as well. Accesses to plain
// memory are checked: two of different threads, one a write, must not come without such an order
// between them. A futex keeps its promise, and a thread that no other will wake is a failure.
//
// Explore runs the threads of a scenario again and again, each time in another random order and
// with other random values read. An order can be left out, to see that the scenario notices it.
//
// Not to be seen here: loads that come after later stores of their thread ("load buffering"), other
// than in plain memory, and stores of two threads to two words in different orders. Words must not
// overlap.
//
// Calling thread: one, that of the test. Threads of a scenario are fibers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ferry::weak {

// A weakened run leaves one of these out.
enum class Order {
  kAcquire,     // of loads of the words, and of updates
  kRelease,     // of stores to the words, and of updates
  kSequential,  // of all accesses to the words: they only acquire and release
  kFullFence,   // of all fences of a thread
  kHeavyFence,  // of those that one thread has all others run
};

struct Weakening {
  Order order;
  const void* words = nullptr;
  size_t size_bytes = 0;
};

using Body = std::function<void()>;
// Prepares memory for a run, and returns its threads.
using Scenario = std::function<std::vector<Body>()>;

// Runs the scenario `runs` times; returns what went wrong in the first run that failed, if any did.
std::optional<std::string> Explore(const Scenario& scenario, uint32_t runs,
                                   const std::optional<Weakening>& weakening = std::nullopt);

// ---- For the threads of a scenario; elsewhere these act on memory as it is ----

// The run has failed unless `holds`.
void Check(bool holds, const char* text);
// Plain memory is about to be read, or written.
void Read(const void* memory, size_t size_bytes);
void Write(const void* memory, size_t size_bytes);
// Another thread may run.
void Yield();

// ---- For words.h ----

uint64_t LoadWord(const void* word, size_t size_bytes, std::memory_order order);
void StoreWord(void* word, size_t size_bytes, uint64_t value, std::memory_order order);
// Returns the value before.
uint64_t UpdateWord(void* word, size_t size_bytes, std::memory_order order,
                    const std::function<uint64_t(uint64_t)>& change);
bool CompareExchangeWord(void* word, size_t size_bytes, uint64_t* expected, uint64_t desired,
                         std::memory_order success, std::memory_order failure);
void Fence(std::memory_order order);
// A full fence in every thread; in this one alone unless threads are covered.
void HeavyFence();
void CoverThreads(bool covered);
// Sleeps until a wake, unless the word (of 32 bits) has another value.
void FutexWait(const void* word, uint32_t expected);
void FutexWake(const void* word);

}  // namespace ferry::weak

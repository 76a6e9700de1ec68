#include "tests/shm/weak/weak_machine.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <unordered_map>

namespace ferry::weak {
namespace {

constexpr size_t kMostThreads = 4;
constexpr size_t kMostWords = 96;
constexpr size_t kStackBytes = size_t{256} * 1024;
constexpr uint32_t kMostSteps = 20'000;  // a run with more does not end
constexpr size_t kGranuleBytes = 4;      // of plain memory

// Ends a thread of a run that has failed.
struct Stop {};

// The knowledge of a thread: of each word the oldest value that it may still read, and of each
// thread how many of its steps came before.
struct View {
  std::array<uint16_t, kMostWords> values{};
  std::array<uint32_t, kMostThreads> steps{};

  void Join(const View& other) {
    JoinValues(other);
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i] = std::max(steps[i], other.steps[i]);
    }
  }
  // A fence tells which values are out of date, but by itself no thread reads another's.
  void JoinValues(const View& other) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::max(values[i], other.values[i]);
    }
  }
};

struct Value {
  uint64_t value = 0;
  View released;  // what a reader learns that acquires
};

struct Word {
  std::vector<Value> values;
  size_t index = 0;
  size_t size_bytes = 0;
};

struct Plain {
  std::array<uint32_t, kMostThreads> read{};  // the step of each thread's last read
  uint32_t written = 0;                       // and of the last write
  size_t writer = 0;
};

// The values that a thread prefers. Without it a run in which all words of a record but one are old
// would be rare.
enum class Taste : uint8_t { kNone, kNew, kOld, kAny };

struct Thread {
  View now;
  View to_acquire;  // by a fence
  View released;    // by a fence
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  Body body;
  const void* sleeps_on = nullptr;
  bool is_over = false;
  Taste taste = Taste::kNone;                  // of this run
  std::array<Taste, kMostWords> word_taste{};  // a few words are exceptions
};

bool Acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

bool Releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

uint64_t ReadMemory(const void* word, size_t size_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, word, size_bytes);
  return value;
}

void WriteMemory(void* word, size_t size_bytes, uint64_t value) {
  std::memcpy(word, &value, size_bytes);
}

class Machine {
 public:
  Machine(uint32_t seed, const std::optional<Weakening>& weakening)
      : random_(seed), weakening_(weakening) {}

  std::optional<std::string> Run(std::vector<Body> bodies);

  Thread& self() { return threads_[running_]; }

  // ---- Steps of the running thread ----

  uint64_t Load(const void* place, size_t size_bytes, std::memory_order order);
  void Store(void* place, size_t size_bytes, uint64_t value, std::memory_order order);
  uint64_t Update(void* place, size_t size_bytes, std::memory_order order,
                  const std::function<uint64_t(uint64_t)>& change);
  bool CompareExchange(void* place, size_t size_bytes, uint64_t* expected, uint64_t desired,
                       std::memory_order success, std::memory_order failure);
  void Fence(std::memory_order order);
  void HeavyFence(bool in_all);
  void Plainly(const void* memory, size_t size_bytes, bool is_write);
  void SleepOn(const void* word, uint32_t expected);
  void Wake(const void* word);
  void Pause() { Step(true); }
  [[noreturn]] void Fail(std::string text);

 private:
  static void Enter();
  void Resume(size_t thread);
  void Suspend();
  void Step(bool yields = false);
  bool IsLeftOut(Order order, const Word& word, const void* place) const;
  bool IsLeftOut(Order order) const { return weakening_ && weakening_->order == order; }
  std::memory_order Weakened(std::memory_order order, const Word& word, const void* place) const;
  Word& WordAt(const void* place, size_t size_bytes);
  Taste TasteFor(const Word& word);
  size_t Choose(const Word& word, std::memory_order order);
  void Learn(Word& word, size_t chosen, std::memory_order order);
  void Append(Word& word, void* place, uint64_t value, std::memory_order order,
              const Value* replaced);
  void FullFence(Thread& thread);
  uint32_t Random(size_t below) { return static_cast<uint32_t>(random_() % below); }

  std::minstd_rand random_;
  std::optional<Weakening> weakening_;
  std::array<Thread, kMostThreads> threads_;
  size_t count_ = 0;
  size_t running_ = 0;
  uint32_t steps_ = 0;
  ucontext_t scheduler_{};
  View sequential_;  // what sequentially consistent accesses and fences have made known
  std::unordered_map<const void*, Word> words_;
  std::unordered_map<uintptr_t, Plain> plain_;
  std::optional<std::string> failure_;
};

Machine* machine = nullptr;  // the run under way, inside its threads
bool covers_threads = false;

// ---- Threads ------------------------------------------------------------------------------------

void Machine::Enter() {
  Thread& self = machine->self();
  try {
    self.body();
  } catch (const Stop&) {
  }
  self.is_over = true;
  machine->Suspend();
}

void Machine::Resume(size_t thread) {
  running_ = thread;
  machine = this;
  swapcontext(&scheduler_, &threads_[thread].context);
  machine = nullptr;
}

void Machine::Suspend() { swapcontext(&self().context, &scheduler_); }

std::optional<std::string> Machine::Run(std::vector<Body> bodies) {
  count_ = bodies.size();
  for (size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread.body = std::move(bodies[i]);
    thread.now.steps[i] = 1;
    thread.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, &Machine::Enter, 0);
  }
  for (;;) {
    std::vector<size_t> ready;
    bool any = false;
    for (size_t i = 0; i < count_; ++i) {
      any |= !threads_[i].is_over;
      if (!threads_[i].is_over && (threads_[i].sleeps_on == nullptr || failure_)) {
        ready.push_back(i);
      }
    }
    if (!any) {
      return failure_;
    }
    if (ready.empty()) {
      failure_ = "a thread sleeps for ever";
      continue;
    }
    Resume(ready[Random(ready.size())]);
  }
}

void Machine::Step(bool yields) {
  if (!failure_ && ++steps_ > kMostSteps) {
    failure_ = "the threads do not end";
  }
  if (!failure_ && (yields || Random(2) == 0)) {
    Suspend();
  }
  if (failure_) {
    throw Stop();
  }
  ++self().now.steps[running_];
}

void Machine::Fail(std::string text) {
  failure_ = std::move(text);
  throw Stop();
}

// ---- Words --------------------------------------------------------------------------------------

bool Machine::IsLeftOut(Order order, const Word& word, const void* place) const {
  if (!IsLeftOut(order)) {
    return false;
  }
  const auto* const begin = static_cast<const std::byte*>(weakening_->words);
  const auto* const at = static_cast<const std::byte*>(place);
  return at >= begin && at + word.size_bytes <= begin + weakening_->size_bytes;
}

std::memory_order Machine::Weakened(std::memory_order order, const Word& word,
                                    const void* place) const {
  bool acquires = Acquires(order);
  bool releases = Releases(order);
  if (order == std::memory_order_seq_cst && !IsLeftOut(Order::kSequential, word, place) &&
      !IsLeftOut(Order::kAcquire, word, place) && !IsLeftOut(Order::kRelease, word, place)) {
    return order;
  }
  acquires &= !IsLeftOut(Order::kAcquire, word, place);
  releases &= !IsLeftOut(Order::kRelease, word, place);
  if (acquires && releases) {
    return std::memory_order_acq_rel;
  }
  return acquires   ? std::memory_order_acquire
         : releases ? std::memory_order_release
                    : std::memory_order_relaxed;
}

Word& Machine::WordAt(const void* place, size_t size_bytes) {
  Word& word = words_[place];
  if (word.values.empty()) {
    if (words_.size() > kMostWords) {
      Fail("the scenario has more words than the machine");
    }
    word.index = words_.size() - 1;
    word.size_bytes = size_bytes;
    word.values.push_back({ReadMemory(place, size_bytes), {}});
  }
  if (word.size_bytes != size_bytes) {
    Fail("a word is accessed by two sizes");
  }
  return word;
}

Taste Machine::TasteFor(const Word& word) {
  Thread& thread = self();
  const auto draw = [this] { return static_cast<Taste>(1 + Random(3)); };
  if (thread.taste == Taste::kNone) {
    thread.taste = draw();
  }
  Taste& taste = thread.word_taste[word.index];
  if (taste == Taste::kNone) {
    taste = Random(12) == 0 ? draw() : thread.taste;
  }
  return taste;
}

// Returns the index of the value that a load reads. No thread reads an old one for ever.
size_t Machine::Choose(const Word& word, std::memory_order order) {
  size_t oldest = self().now.values[word.index];
  if (order == std::memory_order_seq_cst) {
    oldest = std::max<size_t>(oldest, sequential_.values[word.index]);
  }
  const size_t last = word.values.size() - 1;
  switch (TasteFor(word)) {
    case Taste::kNew:
      return last;
    case Taste::kOld:
      return Random(32) == 0 ? last : oldest;
    default:
      return Random(2) == 0 ? last : oldest + Random(last - oldest + 1);
  }
}

void Machine::Learn(Word& word, size_t chosen, std::memory_order order) {
  Thread& thread = self();
  thread.now.values[word.index] = static_cast<uint16_t>(chosen);
  const View& released = word.values[chosen].released;
  (Acquires(order) ? thread.now : thread.to_acquire).Join(released);
}

void Machine::Append(Word& word, void* place, uint64_t value, std::memory_order order,
                     const Value* replaced) {
  Thread& thread = self();
  const auto at = static_cast<uint16_t>(word.values.size());
  thread.now.values[word.index] = at;
  View released = Releases(order) ? thread.now : thread.released;
  released.values[word.index] = at;
  if (replaced != nullptr) {
    released.Join(replaced->released);  // an update goes on with a release before it
  }
  word.values.push_back({value, released});
  if (order == std::memory_order_seq_cst) {
    sequential_.values[word.index] = at;
  }
  WriteMemory(place, word.size_bytes, value);
}

uint64_t Machine::Load(const void* place, size_t size_bytes, std::memory_order order) {
  Step();
  Word& word = WordAt(place, size_bytes);
  order = Weakened(order, word, place);
  const size_t chosen = Choose(word, order);
  Learn(word, chosen, order);
  return word.values[chosen].value;
}

void Machine::Store(void* place, size_t size_bytes, uint64_t value, std::memory_order order) {
  Step();
  Word& word = WordAt(place, size_bytes);
  Append(word, place, value, Weakened(order, word, place), nullptr);
}

uint64_t Machine::Update(void* place, size_t size_bytes, std::memory_order order,
                         const std::function<uint64_t(uint64_t)>& change) {
  Step();
  Word& word = WordAt(place, size_bytes);
  order = Weakened(order, word, place);
  Learn(word, word.values.size() - 1, order);
  const Value before = word.values.back();
  Append(word, place, change(before.value), order, &before);
  return before.value;
}

bool Machine::CompareExchange(void* place, size_t size_bytes, uint64_t* expected, uint64_t desired,
                              std::memory_order success, std::memory_order failure) {
  Step();
  Word& word = WordAt(place, size_bytes);
  size_t chosen = Choose(word, Weakened(failure, word, place));
  if (word.values[chosen].value == *expected) {
    chosen = word.values.size() - 1;  // it exchanges the last value, or it fails
  }
  const Value before = word.values[chosen];
  if (before.value != *expected) {
    Learn(word, chosen, Weakened(failure, word, place));
    *expected = before.value;
    return false;
  }
  success = Weakened(success, word, place);
  Learn(word, chosen, success);
  Append(word, place, desired, success, &before);
  return true;
}

// ---- Fences -------------------------------------------------------------------------------------

void Machine::FullFence(Thread& thread) {
  thread.now.Join(thread.to_acquire);
  sequential_.JoinValues(thread.now);
  thread.now.JoinValues(sequential_);
  thread.released = thread.now;
}

void Machine::Fence(std::memory_order order) {
  Step();
  Thread& thread = self();
  if (order == std::memory_order_seq_cst) {
    if (!IsLeftOut(Order::kFullFence)) {
      FullFence(thread);
    }
    return;
  }
  if (Acquires(order)) {
    thread.now.Join(thread.to_acquire);
  }
  if (Releases(order)) {
    thread.released = thread.now;
  }
}

void Machine::HeavyFence(bool in_all) {
  Step();
  if (IsLeftOut(Order::kHeavyFence)) {
    return;
  }
  // Twice: the first thread learns from the last, too.
  for (size_t i = 0; i < 2 * count_; ++i) {
    Thread& thread = threads_[i % count_];
    if (in_all || &thread == &self()) {
      FullFence(thread);
    }
  }
}

// ---- Plain memory -------------------------------------------------------------------------------

void Machine::Plainly(const void* memory, size_t size_bytes, bool is_write) {
  Step();
  const View& now = self().now;
  const auto begin = reinterpret_cast<uintptr_t>(memory) / kGranuleBytes;
  const auto end =
      (reinterpret_cast<uintptr_t>(memory) + size_bytes + kGranuleBytes - 1) / kGranuleBytes;
  for (uintptr_t at = begin; at < end; ++at) {
    Plain& plain = plain_[at];
    bool is_ordered = plain.written <= now.steps[plain.writer];
    for (size_t i = 0; is_write && i < count_; ++i) {
      is_ordered &= plain.read[i] <= now.steps[i];
    }
    if (!is_ordered) {
      Fail(is_write ? "memory is written while another thread uses it"
                    : "memory is read while another thread writes it");
    }
    if (is_write) {
      plain.written = now.steps[running_];
      plain.writer = running_;
    } else {
      plain.read[running_] = now.steps[running_];
    }
  }
}

// ---- Sleep: the kernel has full fences on both sides --------------------------------------------

void Machine::SleepOn(const void* word, uint32_t expected) {
  Step();
  FullFence(self());
  if (ReadMemory(word, sizeof(expected)) != expected) {
    return;
  }
  self().sleeps_on = word;
  Suspend();
  if (failure_) {
    throw Stop();
  }
  FullFence(self());
}

void Machine::Wake(const void* word) {
  Step();
  FullFence(self());
  for (Thread& thread : threads_) {
    if (thread.sleeps_on == word) {
      thread.sleeps_on = nullptr;
    }
  }
}

}  // namespace

// ---- Interface ----------------------------------------------------------------------------------

std::optional<std::string> Explore(const Scenario& scenario, uint32_t runs,
                                   const std::optional<Weakening>& weakening) {
  for (uint32_t run = 1; run <= runs; ++run) {
    Machine made(run * 7919, weakening);
    if (std::optional<std::string> failure = made.Run(scenario())) {
      return *failure + " (run " + std::to_string(run) + ")";
    }
  }
  return std::nullopt;
}

void Check(bool holds, const char* text) {
  if (!holds) {
    machine->Fail(text);
  }
}

void Read(const void* memory, size_t size_bytes) {
  if (machine != nullptr) {
    machine->Plainly(memory, size_bytes, false);
  }
}

void Write(const void* memory, size_t size_bytes) {
  if (machine != nullptr) {
    machine->Plainly(memory, size_bytes, true);
  }
}

void Yield() {
  if (machine != nullptr) {
    machine->Pause();
  }
}

uint64_t LoadWord(const void* word, size_t size_bytes, std::memory_order order) {
  return machine != nullptr ? machine->Load(word, size_bytes, order) : ReadMemory(word, size_bytes);
}

void StoreWord(void* word, size_t size_bytes, uint64_t value, std::memory_order order) {
  if (machine != nullptr) {
    machine->Store(word, size_bytes, value, order);
  } else {
    WriteMemory(word, size_bytes, value);
  }
}

uint64_t UpdateWord(void* word, size_t size_bytes, std::memory_order order,
                    const std::function<uint64_t(uint64_t)>& change) {
  if (machine != nullptr) {
    return machine->Update(word, size_bytes, order, change);
  }
  const uint64_t before = ReadMemory(word, size_bytes);
  WriteMemory(word, size_bytes, change(before));
  return before;
}

bool CompareExchangeWord(void* word, size_t size_bytes, uint64_t* expected, uint64_t desired,
                         std::memory_order success, std::memory_order failure) {
  if (machine != nullptr) {
    return machine->CompareExchange(word, size_bytes, expected, desired, success, failure);
  }
  const uint64_t before = ReadMemory(word, size_bytes);
  const bool is_equal = before == *expected;
  *expected = before;
  WriteMemory(word, size_bytes, is_equal ? desired : before);
  return is_equal;
}

void Fence(std::memory_order order) {
  if (machine != nullptr) {
    machine->Fence(order);
  }
}

void HeavyFence() {
  if (machine != nullptr) {
    machine->HeavyFence(covers_threads);
  }
}

void CoverThreads(bool covered) { covers_threads = covered; }

void FutexWait(const void* word, uint32_t expected) { machine->SleepOn(word, expected); }

void FutexWake(const void* word) {
  if (machine != nullptr) {
    machine->Wake(word);
  }
}

}  // namespace ferry::weak

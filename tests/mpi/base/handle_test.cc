#include <gtest/gtest.h>

#include <climits>
#include <thread>
#include <vector>

#include "client/mpi/base/handle_table.h"
#include "client/mpi/base/object.h"

namespace ferry::mpi {
namespace {

using Table = HandleTable<int, struct Opaque*>;

struct Counted : Object {
  explicit Counted(int* alive) : alive(alive) { ++*alive; }
  ~Counted() override { --*alive; }
  int* alive;
};

struct Derived : Counted {
  using Counted::Counted;
};

struct CountedForAnyThread : Object {
  explicit CountedForAnyThread(int* alive) : Object(ForAnyThread()), alive(alive) { ++*alive; }
  ~CountedForAnyThread() override { --*alive; }
  int* alive;
};

// Two threads take and give back a reference to the object at once.
template <typename T>
void ShareInTwoThreads(const Ref<T>& object) {
  const auto share = [&] {
    for (int i = 0; i < 100'000; ++i) {
      const Ref<T> part = object;
    }
  };
  std::thread other(share);
  share();
  other.join();
}

class ThreadsMeet {
 public:
  explicit ThreadsMeet(bool may) { threads_may_meet = may; }
  ~ThreadsMeet() { threads_may_meet = true; }
};

TEST(RefTest, DeletesWithTheLastPart) {
  int alive = 0;
  Ref<Counted> first = MakeRef<Counted>(&alive);
  Ref<Counted> second = first;
  Ref<Counted> moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: moved from, on purpose
  moved = nullptr;
  EXPECT_EQ(alive, 1);
  second = nullptr;
  EXPECT_EQ(alive, 0);
}

TEST(RefTest, CountsPartsOfSeveralThreads) {
  int alive = 0;
  Ref<Counted> object = MakeRef<Counted>(&alive);
  ShareInTwoThreads(object);
  EXPECT_EQ(alive, 1);
  object = nullptr;
  EXPECT_EQ(alive, 0);
}

TEST(RefTest, CountsPartsOfOneThreadToo) {
  const ThreadsMeet meet(false);
  int alive = 0;
  Ref<Counted> first = MakeRef<Counted>(&alive);
  Ref<Counted> second = first;
  first = nullptr;
  EXPECT_EQ(alive, 1);
  {
    const ThreadsMeet now(true);  // a thread begins: earlier references still count
    first = second;
  }
  second = nullptr;
  EXPECT_EQ(alive, 1);
  first = nullptr;
  EXPECT_EQ(alive, 0);
}

TEST(RefTest, CountsPartsOfObjectsForAnyThreadWhateverTheLevel) {
  const ThreadsMeet meet(false);
  int alive = 0;
  Ref<CountedForAnyThread> object = MakeRef<CountedForAnyThread>(&alive);
  ShareInTwoThreads(object);
  EXPECT_EQ(alive, 1);
  object = nullptr;
  EXPECT_EQ(alive, 0);
}

TEST(RefTest, ShareAddsAPartAndLeaveGivesItAway) {
  int alive = 0;
  Counted* const object = MakeRef<Counted>(&alive).Leave();
  {
    const Ref<Counted> shared = Ref<Counted>::Share(object);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 1);
  object->Release();
  EXPECT_EQ(alive, 0);
}

TEST(RefTest, ConvertsToTheBase) {
  int alive = 0;
  {
    Ref<Counted> base = MakeRef<Derived>(&alive);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(HandleTableTest, FindsWhatWasAddedAndNothingElse) {
  Table table;
  int object = 7;
  EXPECT_EQ(table.Find(nullptr), nullptr);
  const auto handle = table.Add(&object);
  EXPECT_EQ(table.Find(handle), &object);
  EXPECT_FALSE(Table::IsPredefined(handle));
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  for (const uintptr_t wild : {bits + 1, bits + 8, bits + 16, bits - 16, uintptr_t{4096},
                               ~uintptr_t{0}, reinterpret_cast<uintptr_t>(&object)}) {
    EXPECT_EQ(table.Find(reinterpret_cast<Opaque*>(wild)), nullptr) << wild;
    EXPECT_EQ(table.Remove(reinterpret_cast<Opaque*>(wild)), nullptr) << wild;
  }
  EXPECT_EQ(table.count(), 1U);
}

TEST(HandleTableTest, AFreedHandleNamesNothingAndIsUsedAgain) {
  Table table;
  int first = 1;
  int second = 2;
  const auto handle = table.Add(&first);
  EXPECT_EQ(table.Remove(handle), &first);
  EXPECT_EQ(table.Find(handle), nullptr);
  EXPECT_EQ(table.Remove(handle), nullptr);
  EXPECT_EQ(table.Add(&second), handle);
  EXPECT_EQ(table.Find(handle), &second);
}

TEST(HandleTableTest, AHandleCanRestAndStandForAnObjectAgain) {
  Table table;
  int object = 1;
  const auto handle = table.Add(&object);
  Table::Set(handle, nullptr);
  EXPECT_EQ(table.Find(handle), nullptr);
  EXPECT_NE(table.Add(&object), handle) << "it is nobody else's meanwhile";
  Table::Set(handle, &object);
  EXPECT_EQ(table.Find(handle), &object);
}

TEST(HandleTableTest, PredefinedHandlesStayWhatTheyAre) {
  Table table;
  int world = 0;
  auto* const handle = reinterpret_cast<Opaque*>(0x101);
  EXPECT_EQ(table.Find(handle), nullptr);
  table.SetPredefined(handle, &world);
  EXPECT_EQ(table.Find(handle), &world);
  EXPECT_TRUE(Table::IsPredefined(handle));
  EXPECT_EQ(table.Remove(handle), nullptr);
  EXPECT_EQ(table.Find(handle), &world);
}

TEST(HandleTableTest, NumbersHandlesAndFindsThemByNumber) {
  Table table;
  int object = 7;
  Opaque* const first = table.Add(&object);
  Opaque* const second = table.Add(&object);
  EXPECT_EQ(table.NumberOf(first), 1024);
  EXPECT_EQ(table.NumberOf(second), 1025);
  EXPECT_EQ(table.HandleOf(1025), second);
  table.Remove(second);
  EXPECT_EQ(table.HandleOf(1025), second);  // and Find says that it stands for nothing
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(0x101)), 0x101);
  EXPECT_EQ(table.HandleOf(0x101), reinterpret_cast<Opaque*>(0x101));
}

TEST(HandleTableTest, NumbersNothingThatWasNeverGiven) {
  Table table;
  int object = 7;
  EXPECT_EQ(table.HandleOf(1024), nullptr);
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(&object)), 0);
  Opaque* const handle = table.Add(&object);
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(reinterpret_cast<uintptr_t>(handle) + 1)), 0);
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(reinterpret_cast<uintptr_t>(handle) + 16)), 0);
  for (const int number : {1025, -1, INT_MIN, INT_MAX}) {
    EXPECT_EQ(table.HandleOf(number), nullptr) << number;
  }
}

TEST(HandleTableTest, ServesThreadsAtTheSameTime) {
  Table table;
  int object = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const auto handle = table.Add(&object);
        ASSERT_EQ(table.Find(handle), &object);
        ASSERT_EQ(table.Remove(handle), &object);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(table.count(), 0U);
}

}  // namespace
}  // namespace ferry::mpi

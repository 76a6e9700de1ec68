// Failures and error codes, attributes, and objects with their handles.
#include <gtest/gtest.h>

#include <climits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "mpi/base/attribute.h"
#include "mpi/base/error_codes.h"
#include "mpi/base/failure.h"
#include "mpi/base/handle_table.h"
#include "mpi/base/object.h"

namespace ferry::mpi {
namespace {

using Table = HandleTable<int, struct Opaque*>;

TEST(FailureTest, IsSuccessUntilAnErrorClassIsSet) {
  EXPECT_TRUE(Failure().ok());
  const Failure failure = {MPI_ERR_RANK, "rank 7 is not below 4"};
  EXPECT_FALSE(failure.ok());
  EXPECT_EQ(failure.error_class, MPI_ERR_RANK);
}

TEST(ResultTest, HoldsAValueThatCanBeChangedAndMovedOut) {
  Result<std::unique_ptr<std::string>> result = std::make_unique<std::string>("four");
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.failure().ok());
  *result.value() += "teen";
  const std::unique_ptr<std::string> taken = std::move(result).value();
  EXPECT_EQ(*taken, "fourteen");
}

TEST(ResultTest, HoldsAFailure) {
  const Result<int> result = Failure{MPI_ERR_COUNT, "count is -1"};
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.failure().error_class, MPI_ERR_COUNT);
  EXPECT_EQ(result.failure().text, "count is -1");
}

TEST(ResultTest, TellsAnEmptyValueFromAFailure) {
  const Result<std::string> result = std::string();
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.value(), "");
}

std::string Text(const ErrorCodes& codes, int code) {
  std::string text = "untouched";
  EXPECT_TRUE(codes.TextOf(code, &text).ok()) << code;
  return text;
}

int Class(const ErrorCodes& codes, int code) {
  int error_class = -1;
  EXPECT_TRUE(codes.ClassOf(code, &error_class).ok()) << code;
  return error_class;
}

TEST(CodesTest, KnowsEveryPredefinedClassByItsNumber) {
  ErrorCodes codes;
  std::set<std::string> texts;
  for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; ++code) {
    EXPECT_EQ(Class(codes, code), code);
    EXPECT_TRUE(texts.insert(Text(codes, code)).second) << code;
    EXPECT_LT(Text(codes, code).size(), size_t{MPI_MAX_ERROR_STRING});
  }
  for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; ++code) {
    EXPECT_EQ(Class(codes, code), code);
    EXPECT_TRUE(texts.insert(Text(codes, code)).second) << code;
  }
  EXPECT_EQ(Text(codes, MPI_ERR_RANK), "MPI_ERR_RANK: invalid rank");
  EXPECT_STREQ(PredefinedErrorName(MPI_ERR_TRUNCATE), "MPI_ERR_TRUNCATE");
  EXPECT_EQ(PredefinedErrorName(MPI_ERR_ABI + 1), nullptr);
}

TEST(CodesTest, RefusesNumbersThatAreNoCode) {
  ErrorCodes codes;
  int error_class = 0;
  std::string text;
  for (int code : {-1, MPI_ERR_ABI + 1, 1000, MPI_ERR_LASTCODE + 1, 2147483647}) {
    EXPECT_EQ(codes.ClassOf(code, &error_class).error_class, MPI_ERR_ARG) << code;
    EXPECT_EQ(codes.TextOf(code, &text).error_class, MPI_ERR_ARG) << code;
  }
}

TEST(CodesTest, AddsClassesCodesAndTexts) {
  ErrorCodes codes;
  EXPECT_EQ(codes.LastUsed(), MPI_ERR_LASTCODE);
  int error_class = 0;
  int code = 0;
  int other = 0;
  ASSERT_TRUE(codes.AddClass(&error_class).ok());
  EXPECT_GT(error_class, MPI_ERR_LASTCODE);
  EXPECT_EQ(codes.LastUsed(), error_class);
  ASSERT_TRUE(codes.AddCode(error_class, &code).ok());
  ASSERT_TRUE(codes.AddCode(MPI_ERR_IO, &other).ok());
  EXPECT_EQ(codes.LastUsed(), other);
  EXPECT_EQ(Class(codes, error_class), error_class);
  EXPECT_EQ(Class(codes, code), error_class);
  EXPECT_EQ(Class(codes, other), MPI_ERR_IO);
  EXPECT_EQ(Text(codes, code), "");
  ASSERT_TRUE(codes.AddText(code, "the pump is dry").ok());
  EXPECT_EQ(Text(codes, code), "the pump is dry");
  EXPECT_EQ(Text(codes, error_class), "");
  ASSERT_TRUE(codes.AddText(code, "the pump is wet").ok());
  EXPECT_EQ(Text(codes, code), "the pump is wet");
}

TEST(CodesTest, RemovesWhatWasAdded) {
  ErrorCodes codes;
  int error_class = 0;
  int code = 0;
  ASSERT_TRUE(codes.AddClass(&error_class).ok());
  ASSERT_TRUE(codes.AddCode(error_class, &code).ok());
  ASSERT_TRUE(codes.AddText(code, "text").ok());
  EXPECT_EQ(codes.RemoveClass(error_class).error_class, MPI_ERR_ARG);  // it has a code
  EXPECT_EQ(codes.RemoveClass(code).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveCode(error_class).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveCode(code).error_class, MPI_ERR_ARG);  // it has a text
  ASSERT_TRUE(codes.RemoveText(code).ok());
  EXPECT_EQ(Text(codes, code), "");
  ASSERT_TRUE(codes.RemoveCode(code).ok());
  EXPECT_EQ(codes.LastUsed(), error_class);
  ASSERT_TRUE(codes.AddText(error_class, "text").ok());
  EXPECT_EQ(codes.RemoveClass(error_class).error_class, MPI_ERR_ARG);
  ASSERT_TRUE(codes.RemoveText(error_class).ok());
  ASSERT_TRUE(codes.RemoveClass(error_class).ok());
  EXPECT_EQ(codes.LastUsed(), MPI_ERR_LASTCODE);
  EXPECT_EQ(codes.RemoveClass(error_class).error_class, MPI_ERR_ARG);
}

TEST(CodesTest, LeavesPredefinedOnesAlone) {
  ErrorCodes codes;
  int code = 0;
  EXPECT_EQ(codes.AddText(MPI_ERR_RANK, "mine").error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveText(MPI_ERR_RANK).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveClass(MPI_ERR_RANK).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.RemoveCode(MPI_ERR_RANK).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.AddCode(MPI_SUCCESS, &code).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.AddCode(12345678, &code).error_class, MPI_ERR_ARG);
  EXPECT_EQ(Text(codes, MPI_ERR_RANK), "MPI_ERR_RANK: invalid rank");
}

TEST(CodesTest, RefusesTextsThatDoNotFit) {
  ErrorCodes codes;
  int error_class = 0;
  ASSERT_TRUE(codes.AddClass(&error_class).ok());
  EXPECT_EQ(codes.AddText(error_class, nullptr).error_class, MPI_ERR_ARG);
  std::string longest(MPI_MAX_ERROR_STRING - 1, 'x');
  EXPECT_TRUE(codes.AddText(error_class, longest.c_str()).ok());
  EXPECT_EQ(codes.AddText(error_class, (longest + "x").c_str()).error_class, MPI_ERR_ARG);
  EXPECT_EQ(Text(codes, error_class), longest);
}

// This test's callbacks record their arguments in `calls`.
struct Call {
  std::string what;
  int keyval;
  intptr_t value;
  bool operator==(const Call&) const = default;
};

struct Log {
  std::vector<Call> calls;
  int copy_code = MPI_SUCCESS;
  int remove_code = MPI_SUCCESS;
  bool wanted = true;
  void (*during_remove)(Log* log) = nullptr;
};

int NoteCopy(void* object, int keyval, void* extra_state, void* value, void* copied, int* wanted) {
  auto* log = static_cast<Log*>(extra_state);
  EXPECT_EQ(object, reinterpret_cast<void*>(0x77));
  log->calls.push_back({"copy", keyval, reinterpret_cast<intptr_t>(value)});
  *static_cast<void**>(copied) = static_cast<char*>(value) + 100;
  *wanted = log->wanted ? 1 : 0;
  return log->copy_code;
}

int NoteRemove(void* object, int keyval, void* value, void* extra_state) {
  auto* log = static_cast<Log*>(extra_state);
  EXPECT_EQ(object, reinterpret_cast<void*>(0x77));
  log->calls.push_back({"delete", keyval, reinterpret_cast<intptr_t>(value)});
  if (log->during_remove != nullptr) {
    log->during_remove(log);
  }
  return log->remove_code;
}

int CallCopy(AnyFunction function, void* object, int keyval, void* extra_state, void* value,
             void** copied, int* wanted) {
  return reinterpret_cast<decltype(&NoteCopy)>(function)(object, keyval, extra_state, value, copied,
                                                         wanted);
}

int CallRemove(AnyFunction function, void* object, int keyval, void* value, void* extra_state) {
  return reinterpret_cast<decltype(&NoteRemove)>(function)(object, keyval, value, extra_state);
}

class AttributeTest : public testing::Test {
 protected:
  static constexpr Keyval::Caller kCaller{CallCopy, CallRemove};
  static constexpr AttributeKind kKind = AttributeKind::kCommunicator;

  int Create(bool copies = true, bool removes = true) {
    int number = 0;
    EXPECT_TRUE(
        keyvals_
            .Create(kKind, kCaller, copies ? reinterpret_cast<AnyFunction>(NoteCopy) : nullptr,
                    removes ? reinterpret_cast<AnyFunction>(NoteRemove) : nullptr, &log_, &number)
            .ok());
    return number;
  }
  Ref<Keyval> Find(int number) {
    Ref<Keyval> keyval;
    EXPECT_TRUE(keyvals_.Find(kKind, number, &keyval).ok());
    return keyval;
  }
  Failure Set(AttributeSet& set, int number, intptr_t value) {
    return set.Set(object_, Find(number), reinterpret_cast<void*>(value));
  }
  // -1 if it is not set.
  static intptr_t Get(const AttributeSet& set, int number) {
    void* value = nullptr;
    return set.Get(number, &value) ? reinterpret_cast<intptr_t>(value) : -1;
  }

  void* const object_ = reinterpret_cast<void*>(0x77);
  Log log_;
  Keyvals keyvals_{1000};
  AttributeSet set_;
};

TEST_F(AttributeTest, SetsGetsAndDeletes) {
  int a = Create();
  int b = Create();
  EXPECT_NE(a, b);
  EXPECT_GE(a, 1000);
  ASSERT_TRUE(Set(set_, a, 1).ok());
  ASSERT_TRUE(Set(set_, b, 0).ok());
  EXPECT_EQ(Get(set_, a), 1);
  EXPECT_EQ(Get(set_, b), 0);
  ASSERT_TRUE(set_.Delete(object_, a).ok());
  EXPECT_EQ(Get(set_, a), -1);
  EXPECT_EQ(set_.Delete(object_, a).error_class, MPI_ERR_KEYVAL);
  EXPECT_EQ(log_.calls, (std::vector<Call>{{"delete", a, 1}}));
}

TEST_F(AttributeTest, DeletesTheValueThatIsReplaced) {
  int a = Create();
  ASSERT_TRUE(Set(set_, a, 1).ok());
  ASSERT_TRUE(Set(set_, a, 2).ok());
  EXPECT_EQ(log_.calls, (std::vector<Call>{{"delete", a, 1}}));
  log_.remove_code = MPI_ERR_LASTCODE + 5;
  Failure failure = Set(set_, a, 3);
  EXPECT_EQ(failure.error_class, MPI_ERR_LASTCODE + 5);
  EXPECT_EQ(Get(set_, a), 2);
}

TEST_F(AttributeTest, CopiesWhatCallbacksWant) {
  int copied = Create();
  int without = Create(false);
  int duplicated = 0;
  ASSERT_TRUE(keyvals_
                  .Create(kKind, kCaller, reinterpret_cast<AnyFunction>(uintptr_t{1}), nullptr,
                          nullptr, &duplicated)
                  .ok());
  ASSERT_TRUE(Set(set_, copied, 1).ok());
  ASSERT_TRUE(Set(set_, without, 2).ok());
  ASSERT_TRUE(Set(set_, duplicated, 3).ok());
  AttributeSet copies;
  ASSERT_TRUE(set_.CopyTo(object_, &copies).ok());
  EXPECT_EQ(Get(copies, copied), 101);
  EXPECT_EQ(Get(copies, without), -1);
  EXPECT_EQ(Get(copies, duplicated), 3);
  log_.wanted = false;
  AttributeSet none;
  ASSERT_TRUE(set_.CopyTo(object_, &none).ok());
  EXPECT_EQ(Get(none, copied), -1);
  EXPECT_EQ(Get(set_, copied), 1);
}

TEST_F(AttributeTest, EndsCopyingAtTheFirstCallbackThatFails) {
  int a = Create();
  int b = Create();
  ASSERT_TRUE(Set(set_, a, 1).ok());
  ASSERT_TRUE(Set(set_, b, 2).ok());
  log_.copy_code = MPI_ERR_OTHER;
  AttributeSet copies;
  EXPECT_EQ(set_.CopyTo(object_, &copies).error_class, MPI_ERR_OTHER);
  EXPECT_EQ(log_.calls.size(), 1u);
  EXPECT_EQ(Get(copies, a), -1);
}

TEST_F(AttributeTest, DeletesTheYoungestFirst) {
  int a = Create();
  int b = Create();
  int c = Create();
  for (int number : {b, a, c}) {
    ASSERT_TRUE(Set(set_, number, number).ok());
  }
  ASSERT_TRUE(Set(set_, b, 7).ok());  // b is now the youngest
  log_.calls.clear();
  ASSERT_TRUE(set_.DeleteAll(object_).ok());
  EXPECT_EQ(log_.calls, (std::vector<Call>{{"delete", b, 7}, {"delete", c, c}, {"delete", a, a}}));
}

TEST_F(AttributeTest, KeepsWhatADeleteCallbackRefusesToLetGo) {
  int a = Create();
  int b = Create();
  ASSERT_TRUE(Set(set_, a, 1).ok());
  ASSERT_TRUE(Set(set_, b, 2).ok());
  log_.remove_code = MPI_ERR_ARG;
  EXPECT_EQ(set_.DeleteAll(object_).error_class, MPI_ERR_ARG);
  EXPECT_EQ(set_.Delete(object_, a).error_class, MPI_ERR_ARG);
  EXPECT_EQ(Get(set_, a), 1);
  EXPECT_EQ(Get(set_, b), 2);
  log_.remove_code = MPI_SUCCESS;
  EXPECT_TRUE(set_.DeleteAll(object_).ok());
  EXPECT_EQ(Get(set_, a), -1);
}

TEST_F(AttributeTest, LetsCallbacksChangeTheSet) {
  static AttributeSet* set = nullptr;
  static int other = 0;
  int a = Create();
  int b = Create();
  set = &set_;
  other = b;
  ASSERT_TRUE(Set(set_, a, 1).ok());
  ASSERT_TRUE(Set(set_, b, 2).ok());
  log_.during_remove = [](Log* log) {
    log->during_remove = nullptr;
    EXPECT_TRUE(set->Delete(reinterpret_cast<void*>(0x77), other).ok());
  };
  ASSERT_TRUE(set_.Delete(object_, a).ok());
  EXPECT_EQ(log_.calls, (std::vector<Call>{{"delete", a, 1}, {"delete", b, 2}}));
  EXPECT_EQ(Get(set_, b), -1);
}

TEST_F(AttributeTest, KeepsAttributesOfAFreedKey) {
  int a = Create();
  ASSERT_TRUE(Set(set_, a, 1).ok());
  ASSERT_TRUE(keyvals_.Free(kKind, a).ok());
  EXPECT_EQ(keyvals_.count(), 0u);
  Ref<Keyval> keyval;
  EXPECT_EQ(keyvals_.Find(kKind, a, &keyval).error_class, MPI_ERR_KEYVAL);
  EXPECT_EQ(keyvals_.Free(kKind, a).error_class, MPI_ERR_KEYVAL);
  EXPECT_EQ(Get(set_, a), 1);
  AttributeSet copies;
  ASSERT_TRUE(set_.CopyTo(object_, &copies).ok());
  EXPECT_EQ(Get(copies, a), 101);
  ASSERT_TRUE(set_.DeleteAll(object_).ok());
  ASSERT_TRUE(copies.DeleteAll(object_).ok());
  EXPECT_EQ(log_.calls, (std::vector<Call>{{"copy", a, 1}, {"delete", a, 1}, {"delete", a, 101}}));
  EXPECT_NE(Create(), a);
}

TEST_F(AttributeTest, TellsKeysOfOtherKindsApart) {
  int a = Create();
  Ref<Keyval> keyval;
  Failure failure = keyvals_.Find(AttributeKind::kDatatype, a, &keyval);
  EXPECT_EQ(failure.error_class, MPI_ERR_KEYVAL);
  EXPECT_NE(failure.text.find("communicators"), std::string::npos) << failure.text;
  EXPECT_EQ(keyvals_.Free(AttributeKind::kWindow, a).error_class, MPI_ERR_KEYVAL);
  EXPECT_EQ(keyvals_.Find(kKind, MPI_KEYVAL_INVALID, &keyval).error_class, MPI_ERR_KEYVAL);
}

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
  EXPECT_EQ(table.NumberOf(first), 4096);
  EXPECT_EQ(table.NumberOf(second), 4097);
  EXPECT_EQ(table.HandleOf(4097), second);
  table.Remove(second);
  EXPECT_EQ(table.HandleOf(4097), second);  // and Find says that it stands for nothing
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(0x101)), 0x101);
  EXPECT_EQ(table.HandleOf(0x101), reinterpret_cast<Opaque*>(0x101));
}

TEST(HandleTableTest, NumbersNothingThatWasNeverGiven) {
  Table table;
  int object = 7;
  EXPECT_EQ(table.HandleOf(4096), nullptr);
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(&object)), 0);
  Opaque* const handle = table.Add(&object);
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(reinterpret_cast<uintptr_t>(handle) + 1)), 0);
  EXPECT_EQ(table.NumberOf(reinterpret_cast<Opaque*>(reinterpret_cast<uintptr_t>(handle) + 16)), 0);
  for (const int number : {1024, 4095, 4097, -1, INT_MIN, INT_MAX}) {
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

#include "client/mpi/base/attribute.h"

#include <string>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "gtest/gtest.h"

namespace ferry::mpi {
namespace {

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

}  // namespace
}  // namespace ferry::mpi

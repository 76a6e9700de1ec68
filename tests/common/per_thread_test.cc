#include "common/per_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace ferry {
namespace {

std::atomic<int> alive{0};

struct Word {
  Word() { ++alive; }
  ~Word() { --alive; }
  int value = 0;
};

TEST(PerThreadTest, EachThreadHasItsOwnWhichEndsWithIt) {
  OfThisThread<Word>().value = 7;
  EXPECT_EQ(alive, 1);
  std::thread([] {
    EXPECT_EQ(OfThisThread<Word>().value, 0);
    OfThisThread<Word>().value = 8;
    EXPECT_EQ(alive, 2);
  }).join();
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(OfThisThread<Word>().value, 7);
}

// A destructor of the thread's may ask for it, after it has gone or before.
TEST(PerThreadTest, MayBeAskedForWhileTheThreadEnds) {
  struct Late {
    ~Late() { EXPECT_EQ(++OfThisThread<Word>().value, 1); }
  };
  const int before = alive;
  std::thread([] { (void)OfThisThread<Late>(); }).join();
  EXPECT_EQ(alive, before);
}

// While the process ends it is still there: the handler was registered before it was made.
TEST(PerThreadTest, OutlivesTheHandlersOfAtexit) {
  EXPECT_EXIT(
      {
        std::atexit([] { std::_Exit(OfThisThread<Word>().value); });
        OfThisThread<Word>().value = 42;
        std::exit(0);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace ferry

#include "common/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "common/sleep.h"

namespace ferry {
namespace {

using namespace std::chrono_literals;

TEST(ThreadTest, HasItsNameAndNoSignals) {
  char name[16] = {};
  sigset_t blocked;
  StatusOr<std::thread> thread = StartThread("ferry-test", "that is tested", [&] {
    pthread_getname_np(pthread_self(), name, sizeof(name));
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  });
  ASSERT_TRUE(thread.ok()) << thread.status().ToString();
  thread->join();
  EXPECT_STREQ(name, "ferry-test");
  for (const int signal : {SIGALRM, SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) {
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGUSR1), 0) << "the caller's own signals have changed";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space
TEST(ThreadTest, SaysThatTheSystemStartsNoMore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, which has no stack to reuse
  const auto start = [] {
    const rlimit none{1 << 16, 1 << 16};
    setrlimit(RLIMIT_AS, &none);
    const StatusOr<std::thread> thread = StartThread("ferry-test", "that is tested", [] {});
    std::fputs(thread.ok() ? "started" : thread.status().message().c_str(), stderr);
    std::_Exit(thread.ok() || thread.status().code() != ErrorCode::kSystem ? 1 : 0);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(0), "starting the thread that is tested: ");
}
#endif

TEST(ThreadTest, WhoRunsOutOfMemorySaysSo) {
  EXPECT_DEATH(StartThread("ferry-test", "that is tested", [] { throw std::bad_alloc(); })->join(),
               "the thread ferry-test has run out of memory");
}

TEST(ThreadTest, SoDoThoseOfOurOwnPrograms) {
  EXPECT_DEATH(MakeThread("ferry-own", [] { throw std::bad_alloc(); }).join(),
               "the thread ferry-own has run out of memory");
}

TEST(GrowingSleepTest, DoublesUpToAMillisecond) {
  GrowingSleep sleep;
  EXPECT_EQ(sleep.Next(), 20us);
  EXPECT_EQ(sleep.Next(), 40us);
  for (int i = 0; i < 10; ++i) {
    sleep.Next();
  }
  EXPECT_EQ(sleep.Next(), 1000us);
}

}  // namespace
}  // namespace ferry

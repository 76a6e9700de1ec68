// Each way to wait in OpenSHMEM is shown in the PE's session, by name, for whoever looks at the PE
// (docs/shm_layout.md): on one node and on two.
#include "tests/e2e/shown_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

struct Stand {
  const char* what;
  const char* name;  // of the call that PE 0 is in
};

constexpr Stand kStands[] = {
    {"wait_until", "shmem_wait_until"}, {"signal", "shmem_signal_wait_until"},
    {"set_lock", "shmem_set_lock"},     {"barrier_all", "shmem_barrier_all"},
    {"team_sync", "shmem_team_sync"},   {"broadcast", "shmem_broadcast"},
    {"reduce", "shmem_reduce"},         {"malloc", "shmem_malloc"},
    {"finalize", "shmem_finalize"},
};

class ShownCallsTest : public testing::TestWithParam<std::tuple<Stand, int>> {};

TEST_P(ShownCallsTest, AreNamed) {
  const auto& [stand, nodes] = GetParam();
  e2e::Command job(LineOf({.pes = 2, .nodes = nodes}, {"stands", stand.what}));
  for (const char* pe : {"0", "1"}) {
    ASSERT_TRUE(job.WaitForOutput(std::string("PE ") + pe + ": under way"));
  }
  shm::CallsView shown;
  EXPECT_TRUE(e2e::Eventually([&] {
    shown = e2e::ShownCalls(job, 0);
    return shown.calls.size() == 1 &&
           std::string(shm::CallText(shown.calls[0].name)) == stand.name &&
           shown.calls[0].begin_ns != 0;
  })) << e2e::ShownPhrases(job, 0);
  EXPECT_EQ(e2e::ShownPhrases(job, 1), "") << "it computes";
}

INSTANTIATE_TEST_SUITE_P(Stands, ShownCallsTest,
                         testing::Combine(testing::ValuesIn(kStands), testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).what) + "On" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace ferry::shmem_tests

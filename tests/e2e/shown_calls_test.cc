// Calls of ferry.h that wait are shown in the rank's session, for whoever looks at the rank
// (docs/shm_layout.md).
#include "tests/e2e/shown_calls.h"

#include <gtest/gtest.h>

#include <string>

namespace ferry::e2e {
namespace {

void ExpectShown(const std::string& what, uint32_t rank, const std::string& phrase) {
  for (const char* nodes : {"1", "2"}) {
    Command job(PrivateJob({"-n", "2", "--nodes", nodes}, {"tests/e2e/ranks/waits", what}));
    ASSERT_TRUE(UnderWay(&job, 2));
    std::string shown;
    EXPECT_TRUE(Eventually([&] { return (shown = ShownPhrases(job, rank)) == phrase; }))
        << shown << " on nodes: " << nodes;
    EXPECT_EQ(ShownPhrases(job, 1 - rank), "") << "it computes";
  }
}

TEST(ShownCallsTest, AReceive) {
  ExpectShown("unmatched", 1, "ferry_recv from rank 0, tag 7, 8 B\n");
}

TEST(ShownCallsTest, AReceiveFromAnybody) {
  ExpectShown("any", 1, "ferry_recv from any rank, any tag, 8 B\n");
}

TEST(ShownCallsTest, ALongSend) {
  ExpectShown("send", 0, "ferry_send to rank 1, tag 3, 1048576 B\n");
}

}  // namespace
}  // namespace ferry::e2e

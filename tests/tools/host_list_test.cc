#include "tools/ferryrun/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostListTest, ReadsNamesAddressesAndSlots) {
  const auto hosts = ParseHostList("a,b:4,10.0.0.1,fd00::7,[fd00::8]:2,[fd00::9],me@c");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts,
              ElementsAre(Host{"a", 1}, Host{"b", 4}, Host{"10.0.0.1", 1}, Host{"fd00::7", 1},
                          Host{"fd00::8", 2}, Host{"fd00::9", 1}, Host{"me@c", 1}));
}

TEST(HostListTest, AHostNamedAgainGetsMoreSlots) {
  EXPECT_THAT(*ParseHostList("a,b,a:3"), ElementsAre(Host{"a", 4}, Host{"b", 1}));
}

TEST(HostListTest, SaysWhichEntryIsWrong) {
  EXPECT_THAT(ParseHostList("a,,b").status().message(), HasSubstr("'' names no host"));
  EXPECT_THAT(ParseHostList("").status().message(), HasSubstr("'' names no host"));
  EXPECT_THAT(ParseHostList("a:0").status().message(), HasSubstr("'0' is no number of slots"));
  EXPECT_THAT(ParseHostList("a:x").status().message(), HasSubstr("'a:x': 'x' is no number"));
  EXPECT_THAT(ParseHostList("[fd00::8").status().message(), HasSubstr("[ADDRESS]:SLOTS"));
  // Names that a launcher would take for a flag, or a shell for a command.
  EXPECT_THAT(ParseHostList("-oProxyCommand").status().message(), HasSubstr("names no host"));
  EXPECT_THAT(ParseHostList("a;reboot").status().message(), HasSubstr("names no host"));
}

TEST(HostFileTest, TakesBothWaysOfWriting) {
  const auto hosts =
      ParseHostFile("# nodes\n\na slots=2 max_slots=4\n  b:3  # big\n\tc\r\na slots=1\n", "hosts");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, ElementsAre(Host{"a", 3}, Host{"b", 3}, Host{"c", 1}));
}

TEST(HostFileTest, SaysWhereItIsWrong) {
  EXPECT_THAT(ParseHostFile("a\nb cores=2\n", "hosts").status().message(),
              HasSubstr("hosts:2: 'cores=2' after a host"));
  EXPECT_THAT(ParseHostFile("a\n\nb slots=many\n", "hosts").status().message(),
              HasSubstr("hosts:3: "));
  EXPECT_THAT(ParseHostFile("# none\n", "hosts").status().message(), "hosts names no host");
  EXPECT_THAT(ReadHostFile("/nonexistent/hosts").status().message(),
              HasSubstr("cannot read the host file /nonexistent/hosts: No such file"));
}

}  // namespace
}  // namespace ferry::tools

// Info objects, and the kinds of memory that programs ask for by them.
#include "mpi/info/info.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ferry/mpi/mpi.h"
#include "mpi/info/memory_kinds.h"

namespace ferry::mpi {
namespace {

std::string KeyAt(const Info& info, int number) {
  std::string key;
  EXPECT_TRUE(info.KeyAt(number, &key).ok());
  return key;
}

TEST(InfoTest, KeepsKeysInTheOrderInWhichTheyCame) {
  Info info;
  ASSERT_TRUE(info.Set("b", "1").ok());
  ASSERT_TRUE(info.Set("a", "2").ok());
  ASSERT_TRUE(info.Set("c", "3").ok());
  ASSERT_TRUE(info.Set("b", "4").ok());
  EXPECT_EQ(info.count(), 3);
  EXPECT_EQ(KeyAt(info, 0), "b");
  EXPECT_EQ(KeyAt(info, 2), "c");
  EXPECT_EQ(info.Find("b"), "4");
  ASSERT_TRUE(info.Remove("a").ok());
  EXPECT_EQ(KeyAt(info, 1), "c");
  std::string key;
  EXPECT_EQ(info.KeyAt(2, &key).error_class, MPI_ERR_ARG);
  EXPECT_EQ(info.KeyAt(-1, &key).error_class, MPI_ERR_ARG);
}

TEST(InfoTest, TellsAnEmptyValueFromNone) {
  Info info;
  ASSERT_TRUE(info.Set("key", "").ok());
  std::optional<std::string> value;
  ASSERT_TRUE(info.Get("key", &value).ok());
  EXPECT_EQ(value, "");
  ASSERT_TRUE(info.Get("Key", &value).ok());
  EXPECT_EQ(value, std::nullopt);
}

TEST(InfoTest, RefusesKeysAndValuesThatDoNotFit) {
  Info info;
  std::string key(MPI_MAX_INFO_KEY - 1, 'k');
  std::string value(MPI_MAX_INFO_VAL - 1, 'v');
  EXPECT_TRUE(info.Set(key.c_str(), value.c_str()).ok());
  EXPECT_EQ(info.Find(key), value);
  std::optional<std::string> found;
  EXPECT_EQ(info.Set((key + "k").c_str(), "v").error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.Get((key + "k").c_str(), &found).error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.Set("", "v").error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.Set(nullptr, "v").error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.Set("k", nullptr).error_class, MPI_ERR_INFO_VALUE);
  EXPECT_EQ(info.Set("k", (value + "v").c_str()).error_class, MPI_ERR_INFO_VALUE);
  Failure failure = info.Remove("k");
  EXPECT_EQ(failure.error_class, MPI_ERR_INFO_NOKEY);
  EXPECT_NE(failure.text.find("\"k\""), std::string::npos) << failure.text;
  EXPECT_EQ(info.count(), 1);
}

TEST(InfoTest, CopiesDoNotFollowTheOriginal) {
  Info info;
  ASSERT_TRUE(info.Set("a", "1").ok());
  Ref<Info> copy = info.Copy();
  ASSERT_TRUE(info.Set("a", "2").ok());
  EXPECT_EQ(copy->Find("a"), "1");
}

TEST(InfoTest, CutsValuesToTheRoomThereIs) {
  char out[8] = "#######";
  CopyValue("abcdef", 3, out);
  EXPECT_STREQ(out, "abc");
  CopyValue("ab", 6, out);
  EXPECT_STREQ(out, "ab");
  CopyValue("ab", 0, out);
  EXPECT_STREQ(out, "");
}

TEST(InfoTest, SaysHowMuchRoomAStringNeeds) {
  char out[8] = "#######";
  int size = 0;
  CopyString("abcdef", &size, out);
  EXPECT_EQ(size, 7);
  EXPECT_STREQ(out, "#######");
  size = 3;
  CopyString("abcdef", &size, out);
  EXPECT_EQ(size, 7);
  EXPECT_STREQ(out, "ab");
  size = 8;
  CopyString("abcdef", &size, out);
  EXPECT_EQ(size, 7);
  EXPECT_STREQ(out, "abcdef");
}

TEST(InfoTest, DescribesHowAProgramWasStarted) {
  char program[] = "./heat";
  char first[] = "-n";
  char second[] = "4";
  char* argv[] = {program, first, second, nullptr};
  StartFacts facts;
  DescribeCommand(3, argv, &facts);
  facts.max_processes = 0;
  Info info(DescribeStart(facts));
  EXPECT_EQ(info.Find("command"), "./heat");
  EXPECT_EQ(info.Find("argv"), "-n 4");
  EXPECT_EQ(info.Find("maxprocs"), "0");
  EXPECT_EQ(info.Find("host"), std::nullopt);
  StartFacts nothing;
  DescribeCommand(0, nullptr, &nothing);
  EXPECT_TRUE(DescribeStart(nothing).empty());
  facts.arguments.assign(5000, 'a');
  EXPECT_EQ(Info(DescribeStart(facts)).Find("argv")->size(), size_t{MPI_MAX_INFO_VAL - 1});
}

TEST(MemoryKindsTest, KnowsThoseOfTheBackend) {
  EXPECT_EQ(MemoryKinds("host").Supported(""), "mpi,system,ferry");
  EXPECT_EQ(MemoryKinds("cuda").Supported(""), "mpi,system,ferry,cuda:host,cuda:device");
  EXPECT_EQ(MemoryKinds("hip").Supported(""), "mpi,system,ferry,rocm:host,rocm:device");
  EXPECT_EQ(MemoryKinds("level_zero").Supported(""),
            "mpi,system,ferry,level_zero:host,level_zero:device");
}

TEST(MemoryKindsTest, SaysItInTheWordsOfWhoAsked) {
  const MemoryKinds kinds("cuda");
  EXPECT_EQ(kinds.Supported("system,mpi:alloc_mem,cuda:device,rocm:device,cuda:device:host,,x"),
            "mpi,system,ferry,cuda:host,cuda:device,mpi:alloc_mem,cuda:device:host");
}

TEST(MemoryKindsTest, HasWhatAllRestrictorsAllow) {
  const MemoryKinds kinds("cuda");
  EXPECT_TRUE(kinds.HasAll(""));
  EXPECT_TRUE(kinds.HasAll("mpi,system"));
  EXPECT_TRUE(kinds.HasAll("mpi:alloc_mem:win_allocate,ferry:device,cuda:device"));
  EXPECT_FALSE(kinds.HasAll("cuda")) << "that would be managed memory, too";
  EXPECT_FALSE(kinds.HasAll("cuda:managed"));
  EXPECT_FALSE(kinds.HasAll("system,rocm:device"));
  EXPECT_FALSE(kinds.HasAll("mpi:"));
  EXPECT_FALSE(kinds.HasAll("system:host"));
  EXPECT_FALSE(kinds.HasAll("mpi,,system"));
  EXPECT_FALSE(kinds.HasAll("MPI"));
}

}  // namespace
}  // namespace ferry::mpi

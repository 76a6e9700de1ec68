// The table of OpenSHMEM's functions against the standard: how many there are, by group, as its
// chapters count them; that the library shows each under both of its names, and nothing else; that
// docs/shmem.md says the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/exports.h"

namespace ferry::shmem_tests {
namespace {

constexpr char kLibrary[] = "shmem/libferry_shmem.so.0";

struct Entry {
  std::string name;
  std::string standard;
  std::string group;
};

std::vector<Entry> Table() {
  std::ifstream file("tests/shmem/names/listing.txt");
  std::vector<Entry> table;
  Entry entry;
  while (std::getline(file, entry.name, '\t') && std::getline(file, entry.standard, '\t') &&
         std::getline(file, entry.group)) {
    table.push_back(entry);
  }
  return table;
}

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// By hand, from the chapters of OpenSHMEM 1.5 and 1.6: types of each table times forms.
const std::map<std::string, std::map<std::string, int>> kCounts = {
    {"1.5",
     {{"setup, query", 10},
      {"threads", 2},
      {"memory", 6},
      {"teams", 7},
      {"contexts", 4},
      {"put, get", 120},
      {"p, g", 96},
      {"iput, iget", 116},
      {"put_nbi, get_nbi", 120},
      {"AMO, fetching", 170},
      {"AMO, not fetching", 118},
      {"AMO, fetching, nbi", 170},
      {"signals", 121},
      {"barriers", 3},
      {"data collectives", 125},
      {"reductions", 142},
      {"wait, test", 168},
      {"signal wait", 1},
      {"ordering", 4},
      {"locks", 3},
      {"profiling", 1},
      {"generics", 59}}},
    {"1.6",
     {{"setup, query", 1},
      {"teams", 1},
      {"contexts", 2},
      {"ibput, ibget", 116},
      {"signals", 4},
      {"scans", 52},
      {"ordering", 2},
      {"generics", 6}}},
    {"deprecated", {{"deprecated", 99}, {"wait, test", 4}, {"generics", 8}}},
    {"also", {{"wait, test", 12}, {"on queues", 947}, {"also", 15}}},
};

TEST(TableTest, CountsAsTheStandardDoes) {
  std::map<std::string, std::map<std::string, int>> found;
  for (const Entry& entry : Table()) {
    ++found[entry.standard][entry.group];
  }
  EXPECT_EQ(found, kCounts);
}

TEST(TableTest, HasAllFunctionsOfEachStandard) {
  std::map<std::string, int> found;
  std::set<std::pair<std::string, bool>> names;
  for (const Entry& entry : Table()) {
    const bool is_generic = entry.group == "generics";
    EXPECT_TRUE(names.insert({entry.name, is_generic}).second) << entry.name << " is there twice";
    found[entry.standard] += is_generic ? 0 : 1;
  }
  EXPECT_EQ(found["1.5"], 1507);
  EXPECT_EQ(found["deprecated"], 103);
  EXPECT_EQ(found["1.6"], 178);
  EXPECT_EQ(found["also"], 974);
}

TEST(LibraryTest, HasEveryFunctionUnderBothNames) {
  std::vector<std::string> functions;
  for (const Entry& entry : Table()) {
    if (entry.group != "generics") {
      functions.push_back(entry.name);
    }
  }
  e2e::ExpectBothNames(kLibrary, functions, "p");
}

TEST(LibraryTest, HasNothingElse) {
  std::set<std::string> expected;
  for (const Entry& entry : Table()) {
    expected.insert({entry.name, "p" + entry.name});
  }
  for (const auto& [name, symbol] : e2e::ExportsOf(kLibrary)) {
    EXPECT_TRUE(expected.contains(name)) << name;
  }
}

// A row for each group: its functions in 1.5, added by 1.6, deprecated, and those programs use.
TEST(DocumentTest, CoverageIsThatOfTheTable) {
  const std::string document = Read("docs/shmem.md");
  std::map<std::string, std::map<std::string, int>> by_group;
  for (const auto& [standard, groups] : kCounts) {
    for (const auto& [group, count] : groups) {
      by_group[group][standard] = count;
    }
  }
  for (auto& [group, counts] : by_group) {
    std::string row = "| " + group + " |";
    for (const char* standard : {"1.5", "1.6", "deprecated", "also"}) {
      row += counts[standard] == 0 ? " |" : " " + std::to_string(counts[standard]) + " |";
    }
    EXPECT_THAT(document, testing::HasSubstr(row));
  }
}

}  // namespace
}  // namespace ferry::shmem_tests

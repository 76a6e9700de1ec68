// Which algorithm a call takes, and what is recorded of calls.
#include "coll/algorithms/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "coll/algorithms/party.h"
#include "coll/algorithms/selection_file.h"
#include "coll/call_record.h"

namespace ferry::collective {
namespace {

using testing::HasSubstr;
using Kind = CallMismatch::Kind;

Problem Make(Collective collective, size_t bytes, int size, std::vector<int> node_of = {}) {
  Problem problem;
  problem.collective = collective;
  problem.block_bytes = bytes;
  problem.size = size;
  problem.node_of = std::move(node_of);
  return problem;
}

std::string NameOf(const SelectionTable& table, const Problem& problem) {
  return table.Choose(problem).algorithm->name;
}

TEST(SelectionTest, LayoutsAreTold) {
  EXPECT_EQ(LayoutOf(Make(Collective::kBcast, 1, 3)), NodeLayout::kOneNode);
  EXPECT_EQ(LayoutOf(Make(Collective::kBcast, 1, 3, {4, 4, 4})), NodeLayout::kOneNode);
  EXPECT_EQ(LayoutOf(Make(Collective::kBcast, 1, 3, {0, 2, 1})), NodeLayout::kSpread);
  EXPECT_EQ(LayoutOf(Make(Collective::kBcast, 1, 3, {0, 1, 1})), NodeLayout::kMixed);
}

// A part's ranks are found without the ranks of all nodes.
TEST(SelectionTest, PartsHaveTheRanksOfTheirNode) {
  for (const std::vector<int>& node_of : std::vector<std::vector<int>>{
           {}, {0, 0, 1, 1, 2, 2}, {0, 1, 0, 1, 0, 1}, {5, 3, 3, 5, 9, 3}, {0, 0, 0, 0, 0, 1}}) {
    for (int rank = 0; rank < 6; ++rank) {
      Problem problem = Make(Collective::kBarrier, 0, 6, node_of);
      problem.rank = rank;
      problem.among = Among::kNode;
      const Nodes nodes = NodesOf(problem, -1);
      EXPECT_EQ(PartyOf(problem).ranks, nodes.local.ranks);
      EXPECT_EQ(PartyOf(problem).self, nodes.local.self);
      problem.among = Among::kLeaders;
      EXPECT_EQ(PartyOf(problem).ranks, nodes.leaders.ranks);
      EXPECT_EQ(PartyOf(problem).self, nodes.leaders.self);
      problem.collective = Collective::kBcast;
      for (problem.root = 0; problem.root < 6; ++problem.root) {
        const Nodes with_root = NodesOf(problem, problem.root);
        EXPECT_EQ(PartyOf(problem).ranks, with_root.leaders.ranks) << problem.root;
        EXPECT_EQ(PartyOf(problem).self, with_root.leaders.self) << problem.root;
      }
    }
  }
}

TEST(SelectionTest, FirstRuleThatMatchesAndFitsCounts) {
  const SelectionTable table(
      {{Collective::kAllreduce, 100, UINT32_MAX, NodeLayout::kAny, "ring", 7},
       {Collective::kAllreduce, 200, 4, NodeLayout::kAny, "direct", 0},
       {Collective::kAllreduce, UINT64_MAX, UINT32_MAX, NodeLayout::kSpread, "reduce_bcast", 0}});
  EXPECT_EQ(NameOf(table, Make(Collective::kAllreduce, 100, 8)), "ring");
  EXPECT_EQ(table.Choose(Make(Collective::kAllreduce, 100, 8)).segment_bytes, 7u);
  EXPECT_EQ(NameOf(table, Make(Collective::kAllreduce, 101, 4)), "direct");
  EXPECT_EQ(NameOf(table, Make(Collective::kAllreduce, 300, 2, {0, 1})), "reduce_bcast");
  Problem ordered = Make(Collective::kAllreduce, 100, 4);
  ordered.commutative = false;  // the ring algorithm cannot do this
  EXPECT_EQ(NameOf(table, ordered), "direct");
}

TEST(SelectionTest, BoardsAreTakenUnlessARuleSaysOtherwise) {
  const Problem small = Make(Collective::kBcast, 100, 4);
  const Problem large = Make(Collective::kBcast, 101, 4);
  EXPECT_TRUE(SelectionTable().LeavesToBoard(small));
  const SelectionTable table(
      {{Collective::kBcast, 100, UINT32_MAX, NodeLayout::kAny, "board", 0},
       {Collective::kBcast, UINT64_MAX, UINT32_MAX, NodeLayout::kAny, "chain", 7}});
  EXPECT_TRUE(table.LeavesToBoard(small));
  EXPECT_FALSE(table.LeavesToBoard(large));
  EXPECT_TRUE(table.LeavesToBoard(Make(Collective::kReduce, 101, 4)));
  EXPECT_EQ(NameOf(table, small), "chain");  // for a collective that does not block
}

TEST(SelectionTest, ProblemsForBoardsAreTold) {
  EXPECT_TRUE(IsForBoards(Make(Collective::kAlltoall, 8, 2, {3, 3})));
  EXPECT_FALSE(IsForBoards(Make(Collective::kAlltoall, 8, 2, {3, 4})));
  EXPECT_FALSE(IsForBoards(Make(Collective::kAlltoall, 8, 1)));
  EXPECT_FALSE(IsForBoards(Make(Collective::kNeighbourAlltoall, 8, 2)));
  Problem blocks = Make(Collective::kAlltoall, 8, 2);
  blocks.has_blocks = true;
  EXPECT_FALSE(IsForBoards(blocks));
}

// Among several nodes boards do a part, by a rule, where leaders can do the rest.
TEST(SelectionTest, BoardsOfSeveralNodesAreTaken) {
  const std::vector<int> in_order{0, 0, 1, 1};
  const std::vector<int> in_turn{0, 1, 0, 1};
  for (const Collective collective : {Collective::kBarrier, Collective::kBcast, Collective::kReduce,
                                      Collective::kAllreduce, Collective::kAllgather}) {
    Problem problem = Make(collective, 8, 4, in_order);
    EXPECT_FALSE(SelectionTable().LeavesToBoards(problem)) << CollectiveName(collective);
    const SelectionTable told({{collective, 8, 4, NodeLayout::kMixed, "board", 0},
                               {collective, 9, 4, NodeLayout::kMixed, "hierarchical", 0}});
    EXPECT_TRUE(told.LeavesToBoards(problem)) << CollectiveName(collective);
    problem.block_bytes = 9;
    EXPECT_FALSE(told.LeavesToBoards(problem)) << CollectiveName(collective);
    problem.block_bytes = 8;
    problem.node_of = {0, 1, 2, 3};
    EXPECT_FALSE(told.LeavesToBoards(problem)) << CollectiveName(collective);
    problem.node_of = in_turn;
    EXPECT_EQ(IsForBoards(problem), collective != Collective::kAllgather);
    problem.commutative = false;
    EXPECT_EQ(IsForBoards(problem),
              collective == Collective::kBarrier || collective == Collective::kBcast);
    problem.node_of = in_order;
    EXPECT_TRUE(IsForBoards(problem)) << CollectiveName(collective);
  }
  EXPECT_FALSE(IsForBoards(Make(Collective::kAlltoall, 8, 4, in_order)));
  EXPECT_FALSE(SelectionTable().NamesBoardsOfNodes());
  for (const NodeLayout layout : {NodeLayout::kAny, NodeLayout::kMixed, NodeLayout::kOneNode}) {
    const SelectionTable told({{Collective::kBcast, UINT64_MAX, 4, layout, "board", 0}});
    EXPECT_EQ(told.NamesBoardsOfNodes(), layout != NodeLayout::kOneNode);
  }
}

// As if there were no other ranks.
TEST(SelectionTest, PartsHaveSchedulesOfTheirOwn) {
  Problem problem = Make(Collective::kBcast, 8, 5, {0, 1, 0, 1, 0});
  problem.rank = problem.root = 3;
  problem.among = Among::kLeaders;  // 0 and the root
  Schedule schedule = MakeSchedule(SelectionTable(), problem);
  ASSERT_EQ(schedule.steps.size(), 1U);
  EXPECT_EQ(schedule.steps[0].kind, StepKind::kSend);
  EXPECT_EQ(schedule.steps[0].peer, 0);
  problem.among = Among::kNode;
  schedule = MakeSchedule(SelectionTable(), problem);
  ASSERT_EQ(schedule.steps.size(), 1U);
  EXPECT_EQ(schedule.steps[0].peer, 1);
}

// Each rank knows only its own blocks here, so that a rule about sizes must not split the ranks.
TEST(SelectionTest, SizesThatNotAllRanksKnowMatchNoLimit) {
  const SelectionTable table(
      {{Collective::kAlltoall, 100, UINT32_MAX, NodeLayout::kAny, "linear", 0},
       {Collective::kAlltoall, UINT64_MAX, UINT32_MAX, NodeLayout::kAny, "pairwise", 0}});
  Problem problem = Make(Collective::kAlltoall, 0, 8);
  EXPECT_EQ(NameOf(table, problem), "linear");
  problem.has_blocks = true;
  EXPECT_EQ(NameOf(table, problem), "pairwise");
}

TEST(SelectionTest, IntercommunicatorsTakeTheirOwn) {
  const SelectionTable table(
      {{Collective::kBcast, UINT64_MAX, UINT32_MAX, NodeLayout::kAny, "linear", 0}});
  Problem problem = Make(Collective::kBcast, 8, 4);
  problem.is_inter = true;
  EXPECT_EQ(table.Choose(problem).algorithm, InterAlgorithm(Collective::kBcast));
  problem.collective = Collective::kBarrier;  // both groups counted as one
  EXPECT_EQ(NameOf(table, problem), "linear");
  problem.size = 2;
  EXPECT_EQ(NameOf(table, problem), "dissemination");
}

TEST(SelectionTest, BuiltInRulesNameAlgorithmsThatExist) {
  for (const SelectionRule& rule : BuiltInRules()) {
    EXPECT_NE(FindAlgorithm(rule.collective, rule.algorithm), nullptr)
        << CollectiveName(rule.collective) << " " << rule.algorithm;
  }
}

TEST(SelectionTest, DevicesTakeFewSteps) {
  Problem problem = Make(Collective::kReduce, size_t{1} << 20, 4);
  EXPECT_EQ(NameOf({}, problem), "direct");
  problem.of_devices = true;
  EXPECT_EQ(NameOf({}, problem), "binomial");
  EXPECT_EQ(SelectionTable().Choose(problem).segment_bytes, 0u);
  problem.collective = Collective::kAllreduce;
  EXPECT_EQ(NameOf({}, problem), "reduce_bcast");
  problem.block_bytes = size_t{64} << 20;
  EXPECT_EQ(NameOf({}, problem), "rabenseifner");
  problem.commutative = false;
  EXPECT_EQ(NameOf({}, problem), "reduce_bcast");
  const SelectionTable told(
      {{Collective::kAllreduce, UINT64_MAX, UINT32_MAX, NodeLayout::kAny, "ring", 0}});
  problem.commutative = true;
  EXPECT_EQ(NameOf(told, problem), "ring");
}

TEST(SelectionTest, SomethingFitsEveryProblem) {
  for (size_t i = 0; i < kCollectives; ++i) {
    for (const size_t bytes : {size_t{0}, size_t{8}, size_t{1} << 14, size_t{1} << 26}) {
      for (const bool commutative : {false, true}) {
        for (const bool has_blocks : {false, true}) {
          for (const std::vector<int>& node_of :
               {std::vector<int>{}, {0, 1, 2, 3, 4, 5, 6}, {0, 1, 0, 1, 2, 2, 2}}) {
            Problem problem = Make(static_cast<Collective>(i), bytes, 7, node_of);
            problem.of_devices = bytes > 8;
            problem.commutative = commutative;
            problem.has_blocks = has_blocks;
            if (has_blocks) {
              problem.receive_blocks.resize(7, {0, bytes});
            }
            const Choice choice = SelectionTable().Choose(problem);
            ASSERT_NE(choice.algorithm, nullptr);
            EXPECT_TRUE(Fits(*choice.algorithm, problem)) << choice.algorithm->name;
          }
        }
      }
    }
  }
}

// Each name is in the row of its collective.
TEST(SelectionTest, DocumentsNameAllAlgorithms) {
  std::ifstream file("docs/mpi.md");
  ASSERT_TRUE(file);
  for (size_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const std::string name = std::string("`") + CollectiveName(collective) + "`";
    std::string row;
    file.clear();
    file.seekg(0);
    for (std::string line; row.empty() && std::getline(file, line);) {
      const size_t first_cell_end = line.find('|', 2);
      if (line.starts_with("| `") && line.find(name) < first_cell_end) {
        row = line;
      }
    }
    for (const Algorithm& algorithm : AlgorithmsOf(collective)) {
      EXPECT_THAT(row, HasSubstr(std::string("`") + algorithm.name + "`")) << name;
    }
  }
}

// ---- As text ------------------------------------------------------------------------------------

TEST(SelectionFileTest, ReadsWhatItWrites) {
  const std::string text = FormatSelectionRules(BuiltInRules());
  const auto rules = ParseSelectionRules(text, "table.toml");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  EXPECT_EQ(FormatSelectionRules(*rules), text);
  EXPECT_EQ(rules->size(), BuiltInRules().size());
}

TEST(SelectionFileTest, ReadsCommentsAndDefaults) {
  const auto rules = ParseSelectionRules(
      "# tuned\n\n[[rule]]  # one\r\n collective = \"bcast\"\nalgorithm=\"chain\"\n"
      "nodes = \"spread\"\nmax_bytes = 5\n",
      "t");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  ASSERT_EQ(rules->size(), 1u);
  EXPECT_EQ(rules->front().collective, Collective::kBcast);
  EXPECT_EQ(rules->front().algorithm, "chain");
  EXPECT_EQ(rules->front().max_bytes, 5u);
  EXPECT_EQ(rules->front().max_ranks, UINT32_MAX);
  EXPECT_EQ(rules->front().layout, NodeLayout::kSpread);
}

TEST(SelectionFileTest, SaysWhichLineIsWrong) {
  const auto error = [](std::string_view text) {
    const auto rules = ParseSelectionRules(text, "t");
    return rules.ok() ? "none" : rules.status().message();
  };
  EXPECT_THAT(error("collective = \"bcast\"\n"), HasSubstr("t:1: expected [[rule]]"));
  EXPECT_THAT(error("[[rule]]\nnonsense\n"), HasSubstr("t:2: expected"));
  EXPECT_THAT(error("[[rule]]\ncollective = \"bcst\"\n"),
              HasSubstr("t:2: \"bcst\" is no collective"));
  EXPECT_THAT(error("[[rule]]\ncollective = bcast\n"),
              HasSubstr("t:2: collective must be a string"));
  EXPECT_THAT(error("[[rule]]\nmax_bytes = -1\n"), HasSubstr("t:2: max_bytes must be an integer"));
  EXPECT_THAT(error("[[rule]]\nmax_ranks = 4294967296\n"), HasSubstr("t:2: max_ranks must be"));
  EXPECT_THAT(error("[[rule]]\nmax = 1\n"), HasSubstr("t:2: there is no key \"max\""));
  EXPECT_THAT(error("[[rule]]\nnodes = \"two\"\n"), HasSubstr("t:2: nodes is \"two\""));
  EXPECT_THAT(error("\n[[rule]]\ncollective = \"bcast\"\n"), HasSubstr("t:2: the rule names no"));
  EXPECT_THAT(error("[[rule]]\ncollective = \"bcast\"\nalgorithm = \"ring\"\n"),
              HasSubstr("\"ring\" is no algorithm of bcast; these are: board, binomial, "));
}

TEST(SelectionFileTest, OneAlgorithmByName) {
  const auto rules = ParseAlgorithmNames("allreduce=ring, bcast=chain:4096", "here");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  const SelectionTable table(*rules);
  EXPECT_EQ(NameOf(table, Make(Collective::kAllreduce, 8, 4)), "ring");
  EXPECT_EQ(table.Choose(Make(Collective::kBcast, 1 << 20, 4)).segment_bytes, 4096u);
  EXPECT_THAT(ParseAlgorithmNames("allreduce", "here").status().message(),
              HasSubstr("here: \"allreduce\" is not of the form"));
  EXPECT_THAT(ParseAlgorithmNames("bcast=ring", "here").status().message(),
              HasSubstr("\"ring\" is no algorithm of bcast"));
  EXPECT_THAT(ParseAlgorithmNames("bcast=chain:x", "here").status().message(),
              HasSubstr("no number of bytes"));
}

CallRecord Record(const char* call, Collective collective) {
  CallRecord record;
  SetName(&record, call);
  record.collective = static_cast<uint8_t>(collective);
  return record;
}

CallRecord Bcast(int root, DataRecord data) {
  CallRecord record = Record("MPI_Bcast", Collective::kBcast);
  record.root = root;
  record.has_data = 1;
  record.data = data;
  return record;
}

TEST(CallRecordTest, CallsThatBelongTogetherAreNoMismatch) {
  EXPECT_FALSE(FindMismatch(std::vector{Bcast(1, {4, 7, 16}), Bcast(1, {4, 7, 16})}).is_one());
  EXPECT_FALSE(FindMismatch(std::vector{Bcast(1, {4, 7, 16})}).is_one());
}

TEST(CallRecordTest, CountsMayBePassedInEitherWay) {
  CallRecord large = Record("MPI_Bcast_c", Collective::kBcast);
  EXPECT_STREQ(large.name, "MPI_Bcast");
}

TEST(CallRecordTest, TheFirstThatDiffersIsNamedWithRankZero) {
  const std::vector records{Bcast(0, {4, 7, 16}), Bcast(0, {4, 7, 16}), Bcast(2, {4, 7, 16})};
  const CallMismatch found = FindMismatch(records);
  EXPECT_EQ(found.kind, Kind::kRoot);
  EXPECT_EQ(found.text, "rank 2 passed the root 2, but rank 0 the root 0");
}

TEST(CallRecordTest, AnotherCallCountsBeforeAnythingElse) {
  CallRecord failed = Record("MPI_Reduce", Collective::kReduce);
  failed.has_failed = 1;
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {}), failed}).kind, Kind::kCall);
}

TEST(CallRecordTest, WhoFailedIsQuoted) {
  CallRecord failed = Bcast(0, {});
  failed.has_failed = 1;
  SetText(failed.text, "the root 9 is no rank");
  const CallMismatch found = FindMismatch(std::vector{Bcast(0, {}), failed});
  EXPECT_EQ(found.kind, Kind::kFailed);
  EXPECT_THAT(found.text, HasSubstr("rank 1 could not go through with it: the root 9 is no rank"));
}

TEST(CallRecordTest, TypesOfAsManyElementsAreToldFromCounts) {
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {4, 7, 16}), Bcast(0, {4, 8, 16})}).kind,
            Kind::kType);
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {4, 7, 16}), Bcast(0, {5, 9, 20})}).kind,
            Kind::kCount);
}

TEST(CallRecordTest, OfPackedDataBytesCount) {
  EXPECT_FALSE(FindMismatch(std::vector{Bcast(0, {16, 0, 16}), Bcast(0, {4, 8, 16})}).is_one());
  EXPECT_EQ(FindMismatch(std::vector{Bcast(0, {16, 0, 16}), Bcast(0, {4, 8, 20})}).kind,
            Kind::kCount);
}

// A rank beside the root of a gather between groups has nothing to compare.
TEST(CallRecordTest, WhoSaysNothingIsNotWhatOthersAreComparedWith) {
  CallRecord nothing = Bcast(0, {});
  nothing.has_data = 0;
  const std::vector records{nothing, Bcast(0, {4, 7, 16}), Bcast(0, {5, 7, 20})};
  EXPECT_THAT(FindMismatch(records).text, HasSubstr("rank 2 passed 5 elements (20 bytes), but rank "
                                                    "1 4 elements (16 bytes)"));
}

TEST(CallRecordTest, OfIntercommunicatorsTheCallAndTheOperationCount) {
  CallRecord a = Bcast(-2, {4, 7, 16});
  CallRecord b = Bcast(0, {9, 9, 9});
  a.is_inter = b.is_inter = 1;
  EXPECT_FALSE(FindMismatch(std::vector{a, b}).is_one());
  SetText(a.op, "MPI_SUM");
  EXPECT_EQ(FindMismatch(std::vector{a, b}).kind, Kind::kOp);
}

TEST(CallRecordTest, ListsAreComparedPairByPair) {
  const std::vector<CallRecord> records(2);
  const DataRecord one{1, 7, 4}, two{2, 8, 8}, nothing{.elements = kSaysNothing};
  // By rank: the lists of what it sends to each, and of what it receives from each.
  std::vector lists{one, one, one, two, one, one, one, one};
  const CallMismatch found = FindListMismatch(records, lists);
  EXPECT_EQ(found.kind, Kind::kCount);
  EXPECT_EQ(found.text,
            "rank 1 passed 1 element (4 bytes) for rank 0, which expects 2 elements "
            "(8 bytes)");
  lists[3] = nothing;
  EXPECT_FALSE(FindListMismatch(records, lists).is_one());
}

TEST(CallRecordTest, TextsAreCutWhereThereIsNoRoom) {
  char text[8];
  SetText(text, "0123456789");
  EXPECT_STREQ(text, "0123456");
}

}  // namespace
}  // namespace ferry::collective

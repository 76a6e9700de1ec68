// A rank of a launcher that speaks PMI-1, which here is a script of answers.
#include "client/bootstrap/pmi_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/net_address.h"
#include "common/unique_fd.h"
#include "tests/support/patience.h"

namespace ferry::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ProcessMappingTest, TellsTheRanksOfANode) {
  EXPECT_THAT(*ParseProcessMapping("(vector,(0,1,4))", 2, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(*ParseProcessMapping("(vector,(0,2,2))", 3, 4), ElementsAre(2, 3));
  EXPECT_THAT(*ParseProcessMapping("(vector,(0,1,1),(4,2,2),(0,1,1))", 5, 6), ElementsAre(0, 5));
  EXPECT_THAT(*ParseProcessMapping("(vector,(0,2,1))", 1, 5), ElementsAre(1, 3));  // in turn
  EXPECT_THAT(*ParseProcessMapping("(vector,(0,1,4000000000))", 1, 2), ElementsAre(0, 1));
}

TEST(ProcessMappingTest, RefusesWhatIsNoMapping) {
  for (const char* text :
       {"", "vector", "(vector)", "(vector,)", "(vector,(0,1))", "(vector,(0,1,1)",
        "(vector,(0,0,1))", "(vector,(0,1,0))", "(vector,(0,4000000000,0),(0,1,1))",
        "(vector,(0,1,1,1))", "(vector,(-1,1,1))", "(vector,(0,1,x))", "(vector,(0,1,1)(0,1,1))",
        "(vector,(0,1,99999999999))"}) {
    const Status status = ParseProcessMapping(text, 0, 2).status();
    EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << text;
    EXPECT_THAT(status.message(), HasSubstr("PMI_process_mapping")) << text;
  }
}

// Four ranks on two nodes, as the ranks themselves say.
class FourRanks : public Exchange {
 public:
  uint32_t rank() const override { return 1; }
  uint32_t size() const override { return 4; }
  const std::vector<uint32_t>& local_ranks() const override { return none_; }
  Status Put(const std::string& /*name*/, const std::string& words) override {
    here_ = words;
    return {};
  }
  Status Fence() override {
    ++fences_;
    return {};
  }
  StatusOr<std::string> Get(uint32_t rank, const std::string& /*name*/) override {
    return rank < 2 ? here_ : std::string("another node");
  }
  void Abort(int /*exit_code*/, const std::string& /*text*/) override {}
  int fences() const { return fences_; }

 private:
  const std::vector<uint32_t> none_;
  std::string here_;
  int fences_ = 0;
};

TEST(FindNodeTest, AsksTheRanksWhereTheLauncherHasNoMapping) {
  FourRanks ranks;
  EXPECT_THAT(*FindNode("(vector,(0,2,1))", &ranks), ElementsAre(1, 3));
  EXPECT_EQ(FindNode("nonsense", &ranks).status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ranks.fences(), 0);
  EXPECT_THAT(*FindNode(std::nullopt, &ranks), ElementsAre(0, 1));
  EXPECT_THAT(*FindNode("", &ranks), ElementsAre(0, 1));
  EXPECT_EQ(ranks.fences(), 2);
}

TEST(PmiTextTest, ComesBackAsItWas) {
  const std::string words = "0 /run/my ferry\n=;%\xc3\xa9 10.0.0.1:4000";
  const std::string text = ToPmiText(words);
  EXPECT_EQ(text.find_first_of(" \n=;"), text.npos) << text;
  EXPECT_EQ(*FromPmiText(text), words);
  for (const char* bad : {"%", "%4", "%zz", "a%2"}) {
    EXPECT_EQ(FromPmiText(bad).status().code(), ErrorCode::kCorrupt) << bad;
  }
}

TEST(PmiWireTest, KnowsWhetherALauncherStartedThisProcess) {
  const char* const by_descriptor[] = {"PMI_FD=3", "PMI_RANK=0", "PMI_SIZE=1", nullptr};
  const char* const by_port[] = {"PMI_PORT=node:1", "PMI_ID=0", nullptr};
  const char* const half[] = {"PMI_RANK=0", "PMI_SIZE=1", nullptr};
  EXPECT_TRUE(PmiWire::IsAround(by_descriptor));
  EXPECT_TRUE(PmiWire::IsAround(by_port));
  EXPECT_FALSE(PmiWire::IsAround(half));
}

using Answers = std::map<std::string, std::string>;  // by the request's first word

// As Hydra answers a job of one rank.
Answers GoodAnswers() {
  return {{"cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
          {"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=64"},
          {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_1"},
          {"cmd=get_appnum", "cmd=appnum appnum=2"},
          {"cmd=get_universe_size", "cmd=universe_size size=9"},
          {"cmd=get", "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))"},
          {"cmd=put", "cmd=put_result rc=0 msg=success"},
          {"cmd=barrier_in", "cmd=barrier_out"},
          {"cmd=finalize", "cmd=finalize_ack"}};
}

constexpr char kHangsUp[] = "-";
constexpr char kSilent[] = "";

// Answers until the other end is closed, or an answer is kHangsUp; to kSilent, nothing.
class PlayedLauncher {
 public:
  PlayedLauncher(UniqueFd socket, Answers answers)
      : socket_(std::move(socket)), answers_(std::move(answers)), thread_([this] { Serve(); }) {}
  ~PlayedLauncher() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  // Once the other end is closed.
  const std::vector<std::string>& requests() {
    thread_.join();
    return requests_;
  }

 private:
  void Serve() {
    for (;;) {
      const size_t end = input_.find('\n');
      if (end == input_.npos) {
        std::array<char, 4096> bytes;
        const ssize_t size = read(socket_.get(), bytes.data(), bytes.size());
        if (size <= 0) {
          return;
        }
        input_.append(bytes.data(), static_cast<size_t>(size));
        continue;
      }
      const std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      requests_.push_back(line);
      const auto answer = answers_.find(line.substr(0, line.find(' ')));
      if (answer == answers_.end() || answer->second == kHangsUp) {
        return socket_.Reset();
      }
      if (answer->second != kSilent) {
        const std::string text = answer->second + "\n";
        (void)send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      }
    }
  }

  UniqueFd socket_;
  const Answers answers_;
  std::string input_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

constexpr uint64_t kNoHurryMs = tests::kPatienceMs;

// Opens the wire to a launcher with those answers.
StatusOr<std::unique_ptr<PmiWire>> OpenTo(const Answers& answers,
                                          std::unique_ptr<PlayedLauncher>* launcher,
                                          uint64_t timeout_ms = kNoHurryMs,
                                          const std::string& rank = "0",
                                          const std::string& size = "PMI_SIZE=1") {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  *launcher = std::make_unique<PlayedLauncher>(UniqueFd(ends[0]), answers);
  const std::string fd = "PMI_FD=" + std::to_string(ends[1]);
  const std::string rank_text = "PMI_RANK=" + rank;
  const char* const environment[] = {fd.c_str(), rank_text.c_str(), size.c_str(), nullptr};
  StatusOr<std::unique_ptr<PmiWire>> wire = PmiWire::Open(environment, timeout_ms);
  if (rank != "0" && !wire.ok() && wire.status().code() == ErrorCode::kConfiguration) {
    close(ends[1]);  // it was not looked at
  }
  return wire;
}

TEST(PmiWireTest, SpeaksPmi1) {
  std::unique_ptr<PlayedLauncher> launcher;
  auto wire = OpenTo(GoodAnswers(), &launcher);
  ASSERT_TRUE(wire.ok()) << wire.status().message();
  EXPECT_EQ((*wire)->rank(), 0U);
  EXPECT_EQ((*wire)->size(), 1U);
  EXPECT_EQ((*wire)->app(), 2U);
  EXPECT_EQ((*wire)->universe_size(), 9U);
  EXPECT_THAT((*wire)->local_ranks(), ElementsAre(0));
  EXPECT_TRUE((*wire)->Put("name", "two words").ok());
  EXPECT_TRUE((*wire)->Fence().ok());
  EXPECT_EQ(*(*wire)->Get(0, "name"), "(vector,(0,1,1))");
  const Status long_words = (*wire)->Put("name", std::string(64, 'x'));
  EXPECT_EQ(long_words.code(), ErrorCode::kLimitExceeded);
  EXPECT_THAT(long_words.message(), AllOf(HasSubstr("64 bytes"), HasSubstr("fewer than 64")));
  wire->reset();
  EXPECT_THAT(launcher->requests(),
              ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes",
                          "cmd=get_my_kvsname", "cmd=get_appnum", "cmd=get_universe_size",
                          "cmd=get kvsname=kvs_1 key=PMI_process_mapping",
                          "cmd=put kvsname=kvs_1 key=name.0 value=two%20words", "cmd=barrier_in",
                          "cmd=get kvsname=kvs_1 key=name.0", "cmd=finalize"));
}

// The launcher's answer to a request, and the error that follows.
struct Fault {
  const char* name;
  const char* request;
  std::string answer;
  ErrorCode code;
  const char* words;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class PmiFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(PmiFaultTest, IsNamed) {
  Answers answers = GoodAnswers();
  answers[GetParam().request] = GetParam().answer;
  std::unique_ptr<PlayedLauncher> launcher;
  const auto wire = OpenTo(answers, &launcher, GetParam().answer == kSilent ? 50 : kNoHurryMs);
  EXPECT_EQ(wire.status().code(), GetParam().code) << wire.status().message();
  EXPECT_THAT(wire.status().message(), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    All, PmiFaultTest,
    testing::Values(
        Fault{"HangsUp", "cmd=get_maxes", kHangsUp, ErrorCode::kSystem, "hung up"},
        Fault{"SaysNothing", "cmd=get_maxes", kSilent, ErrorCode::kTimeout, "has not answered"},
        Fault{"Refuses", "cmd=init", "cmd=response_to_init rc=-1", ErrorCode::kSystem, "rc=-1"},
        Fault{"SpeaksHttp", "cmd=init", "HTTP/1.1 400 Bad Request", ErrorCode::kCorrupt,
              "HTTP/1.1 400"},
        Fault{"AnswersAnother", "cmd=get_maxes", "cmd=appnum appnum=1", ErrorCode::kCorrupt,
              "cmd=appnum"},
        Fault{"KnowsNoMaximum", "cmd=get_maxes", "cmd=maxes vallen_max=many", ErrorCode::kCorrupt,
              "vallen_max"},
        Fault{"HasNoName", "cmd=get_my_kvsname", "cmd=my_kvsname", ErrorCode::kCorrupt,
              "no kvsname"},
        Fault{"NeverEndsALine", "cmd=init", std::string(1 << 17, 'x'), ErrorCode::kCorrupt,
              "not PMI-1"},
        Fault{"HasABadMapping", "cmd=get", "cmd=get_result rc=0 value=(vector,x)",
              ErrorCode::kCorrupt, "PMI_process_mapping"}),
    [](const auto& info) { return info.param.name; });

TEST(PmiWireTest, ARankThatIsNotInTheJobIsRefused) {
  std::unique_ptr<PlayedLauncher> launcher;
  const auto wire = OpenTo(GoodAnswers(), &launcher, kNoHurryMs, "1");
  EXPECT_EQ(wire.status().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(wire.status().message(), HasSubstr("rank 1 of 1"));
}

TEST(PmiWireTest, AJobOfMoreRanksThanThereCanBeIsRefusedAtOnce) {
  for (const char* mapping : {"(vector,(0,1,4294967295))", "(vector,(0,4294967295,1))", ""}) {
    Answers answers = GoodAnswers();
    answers["cmd=get"] = "cmd=get_result rc=0 value=" + std::string(mapping);
    std::unique_ptr<PlayedLauncher> launcher;
    const auto wire = OpenTo(answers, &launcher, kNoHurryMs, "2147483647", "PMI_SIZE=4294967295");
    EXPECT_EQ(wire.status().code(), ErrorCode::kLimitExceeded) << mapping;
    EXPECT_THAT(wire.status().message(), HasSubstr("4294967295 ranks; one may have 1048576"));
  }
}

TEST(PmiWireTest, AVariableThatIsNoNumberIsNamed) {
  std::unique_ptr<PlayedLauncher> launcher;
  const auto wire = OpenTo(GoodAnswers(), &launcher, kNoHurryMs, "first");
  EXPECT_EQ(wire.status().code(), ErrorCode::kConfiguration);
  EXPECT_THAT(wire.status().message(), HasSubstr("PMI_RANK=first"));
}

TEST(PmiWireTest, ADescriptorThatIsClosedIsNamed) {
  const char* const environment[] = {"PMI_FD=999999", "PMI_RANK=0", "PMI_SIZE=1", nullptr};
  EXPECT_THAT(PmiWire::Open(environment, 1000).status().message(), HasSubstr("PMI_FD=999999"));
}

// Where the launcher says nothing of nodes, the ranks tell each other.
TEST(PmiWireTest, WithoutAMappingRanksFindTheirNode) {
  Answers answers = GoodAnswers();
  answers["cmd=get"] = "cmd=get_result rc=-1 msg=key_not_found";
  std::unique_ptr<PlayedLauncher> launcher;
  const auto wire = OpenTo(answers, &launcher);
  EXPECT_EQ(wire.status().code(), ErrorCode::kSystem);  // this launcher forgets what they put
  const std::string said = testing::PrintToString(launcher->requests());
  EXPECT_THAT(said, AllOf(HasSubstr("key=ferry.host.0 value="), HasSubstr("cmd=barrier_in"),
                          HasSubstr("get kvsname=kvs_1 key=ferry.host.0")));
}

// By a port in place of a descriptor.
TEST(PmiWireTest, AsksAtAPort) {
  StatusOr<UniqueFd> listener = daemon::ListenTcp({"127.0.0.1", 0}, "port");
  ASSERT_TRUE(listener.ok());
  std::string place = "PMI_PORT=127.0.0.1:" + std::to_string(daemon::PortOf(listener->get()));
  Answers answers = GoodAnswers();
  answers["cmd=initack"] = "cmd=initack rc=0\ncmd=set size=1\ncmd=set rank=0\ncmd=set debug=0";
  const char* const environment[] = {place.c_str(), "PMI_ID=0", nullptr};
  StatusOr<std::unique_ptr<PmiWire>> wire = Status(ErrorCode::kInternal, "not opened");
  std::thread rank([&] { wire = PmiWire::Open(environment, kNoHurryMs); });
  pollfd waiting{listener->get(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, tests::kPatienceMs), 1);
  PlayedLauncher launcher(UniqueFd(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC)),
                          answers);
  rank.join();
  ASSERT_TRUE(wire.ok()) << wire.status().message();
  EXPECT_EQ((*wire)->size(), 1U);
  wire->reset();
}

TEST(PmiWireTest, APortWhereNobodyListensIsNamed) {
  const char* const environment[] = {"PMI_PORT=127.0.0.1:1", "PMI_ID=0", nullptr};
  EXPECT_THAT(PmiWire::Open(environment, 1000).status().message(),
              HasSubstr("PMI_PORT=127.0.0.1:1"));
}

}  // namespace
}  // namespace ferry::client

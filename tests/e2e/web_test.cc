// `ferryctl web` with real daemons, ranks, users, and a browser where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/browser.h"
#include "tests/support/processes.h"
#include "tests/support/web_client.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using tests::Request;
using tests::StatusOf;
using tests::Talk;
using tests::WebEvents;
using tests::WebVisitor;

constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kWaits[] = "tests/e2e/ranks/waits";

// The address that a `ferryctl web --json` has printed.
std::string AddressOf(Command* web) {
  EXPECT_TRUE(web->WaitForOutput("\n"));
  const json printed = json::parse(web->Output(), nullptr, false);
  EXPECT_TRUE(printed.is_object()) << web->Output();
  return printed.value("address", "");
}

// Takes events until the state is as wanted.
bool Reaches(WebEvents* events, const std::function<bool(const json&)>& wanted) {
  const auto end = std::chrono::steady_clock::now() + tests::kPatience;
  while (std::chrono::steady_clock::now() < end && !events->Next().empty()) {
    if (wanted(events->state)) {
      return true;
    }
  }
  return false;
}

// The ranks of the only job.
json RanksOf(const json& state) {
  return state["jobs"].size() == 1 ? (*state["jobs"].begin())["ranks"] : json::object();
}

bool WaitsLong(const json& rank) {
  return rank.value("state", "") == "waits" && rank.contains("why");
}

class WebTest : public testing::Test {
 protected:
  // A job on private daemons, and the page about all of them.
  void Start(int ranks, int nodes, const std::string& what) {
    job_ = std::make_unique<Command>(
        PrivateJob({"-n", std::to_string(ranks), "--nodes", std::to_string(nodes),
                    "--peer_timeout_ms=60000", "--operation_timeout_ms=60000"},
                   {kWaits, what}));
    ASSERT_TRUE(UnderWay(job_.get(), ranks));
    const Words daemons = Daemons(*job_);
    ASSERT_EQ(daemons.size(), static_cast<size_t>(nodes));
    Words look = {kFerryctl, "web", "--json"};
    if (nodes == 1) {
      look.push_back("--run_directory=" + daemons[0]);
    } else {  // this user may have other daemons here
      const json status = json::parse(
          RunCommand({kFerryctl, "status", "--json", "--run_directory=" + daemons[0]}).out);
      look = Joined(look, {"-j", status["jobs"][0]["job_id"]});
    }
    // By its variable ferryctl finds the private daemons of that ferryrun.
    web_ = std::make_unique<Command>(With({"XDG_RUNTIME_DIR=" + job_->runtime_directory()}, look));
    address_ = AddressOf(web_.get());
    ASSERT_THAT(address_, testing::StartsWith("http://127.0.0.1:"));
  }
  void TearDown() override {
    if (web_ != nullptr) {
      web_->Signal(SIGTERM);
      EXPECT_EQ(web_->Wait().exit_code, 0);
    }
  }

  std::unique_ptr<Command> job_;
  std::unique_ptr<Command> web_;
  std::string address_;
};

TEST_F(WebTest, ShowsFourRanksAndWhoWaitsForWhom) {
  Start(4, 1, "chain");
  WebEvents events((WebVisitor(address_)));
  ASSERT_TRUE(Reaches(&events, [](const json& state) {
    json ranks = RanksOf(state);
    return ranks.size() == 4 && WaitsLong(ranks["0"]) && WaitsLong(ranks["2"]);
  })) << events.state.dump(2);
  const json ranks = RanksOf(events.state);
  EXPECT_EQ(ranks["3"]["state"], "computes");
  EXPECT_FALSE(ranks["3"].contains("why"));
  EXPECT_EQ(ranks["0"]["chain"], json({0, 1, 2, 3}));
  EXPECT_THAT(ranks["2"]["why"].get<std::string>(),
              HasSubstr("rank 2 waits for rank 3, which is outside Ferry"));
  EXPECT_GT(ranks["1"]["pid"], 1);
  const json& daemon = *events.state["daemons"].begin();
  EXPECT_EQ(daemon["sessions"], 4);
  EXPECT_FALSE(daemon["nics"].empty());
  EXPECT_EQ(daemon["users"][std::to_string(geteuid())]["ranks"][0], 4);
  EXPECT_EQ(events.state["uid"], geteuid());
}

TEST_F(WebTest, ShowsADeadlockAndItsEnd) {
  Start(3, 1, "circle");
  WebEvents events((WebVisitor(address_)));
  ASSERT_TRUE(Reaches(&events, [](const json& state) {
    json ranks = RanksOf(state);
    return ranks.size() == 3 && ranks["1"].value("deadlock", false);
  })) << events.state.dump(2);
  EXPECT_THAT(RanksOf(events.state)["1"]["why"].get<std::string>(),
              testing::StartsWith("deadlock: "));
  job_->Signal(SIGTERM);
  job_->Wait();
  EXPECT_TRUE(Reaches(&events, [](const json& state) {
    return state["jobs"].empty() && state["trouble"] != "";
  })) << events.state.dump(2);
}

TEST_F(WebTest, AStoppedRankIsShownAsSuch) {
  Start(2, 1, "unmatched");
  WebEvents events((WebVisitor(address_)));
  ASSERT_TRUE(Reaches(&events, [](const json& state) { return RanksOf(state).size() == 2; }));
  const pid_t pid = RanksOf(events.state)["0"]["pid"];
  kill(pid, SIGSTOP);
  EXPECT_TRUE(Reaches(&events, [](const json& state) {
    return RanksOf(state)["0"]["state"] == "stopped";
  })) << events.state.dump(2);
  kill(pid, SIGCONT);
}

TEST_F(WebTest, NodesOfOneJobAreTogether) {
  Start(4, 2, "chain");
  WebEvents events((WebVisitor(address_)));
  EXPECT_TRUE(Reaches(&events, [](const json& state) {
    json ranks = RanksOf(state);
    return state["daemons"].size() >= 2 && ranks.size() == 4 && ranks["3"]["node"] == 1 &&
           ranks["0"]["node"] == 0 && WaitsLong(ranks["0"]);
  })) << events.state.dump(2);
}

TEST_F(WebTest, SixtyFourRanksCostLittle) {
  Start(64, 1, "chain");
  WebEvents events((WebVisitor(address_)));
  ASSERT_TRUE(Reaches(&events, [](const json& state) {
    json ranks = RanksOf(state);
    return ranks.size() == 64 && std::count_if(ranks.begin(), ranks.end(), WaitsLong) == 63;
  })) << events.state.dump(2);
  // Nothing moves: events that say so are short.
  size_t shortest = SIZE_MAX;
  for (int i = 0; i < 5; ++i) {
    events.Next();
    shortest = std::min(shortest, events.bytes);
  }
  EXPECT_LT(shortest, 1000U);
}

TEST_F(WebTest, ABrowserShowsWhoWaitsForWhom) {
  if (!tests::Browser::IsInstalled()) {
    GTEST_SKIP() << "there is no " << tests::Browser::kProgram << " (Debian's package chromium)";
  }
  Start(4, 1, "chain");
  tests::Browser browser(1280, 820);
  browser.Open(address_);
  EXPECT_TRUE(browser.Awaits("document.querySelectorAll('.wait').length === 3"));
  EXPECT_EQ(browser.Evaluate("document.querySelectorAll('.rank').length"), 4);
  EXPECT_EQ(browser.Evaluate("document.querySelectorAll('.rank .k-computes').length"), 1);
  EXPECT_TRUE(
      browser.Awaits("[...document.querySelectorAll('.job > .alarm')].some((line) =>"
                     " line.textContent.startsWith('rank 2 waits for rank 3, which is"
                     " outside Ferry'))"));
  EXPECT_TRUE(browser.Awaits("model.points.length > 10"));
  browser.Picture("real_job");
  browser.Evaluate(
      "document.querySelector('[data-rank=\"1\"]').dispatchEvent(new MouseEvent('click'))");
  EXPECT_TRUE(browser.Awaits("document.querySelector('.why').textContent.includes('receive')"));
  browser.Picture("real_rank");
  EXPECT_THAT(browser.complaints(), testing::IsEmpty());
}

TEST_F(WebTest, ADaemonThatRestartsIsShownAgain) {
  const TempDirectory folder;
  const std::string run = folder / "run";
  std::unique_ptr<Command> daemon = StartDaemon({"daemon/ferryd"}, run);
  web_ = std::make_unique<Command>(Words{kFerryctl, "web", "--json", "--run_directory=" + run});
  WebEvents events((WebVisitor(AddressOf(web_.get()))));
  const auto shows = [](pid_t pid) {
    return [pid](const json& state) {
      const json& daemons = state["daemons"];
      return daemons.size() == 1 && daemons.begin()->value("pid", 0) == pid;
    };
  };
  ASSERT_TRUE(Reaches(&events, shows(daemon->pid()))) << events.state.dump(2);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->WaitCleanly().exit_code, 0);
  EXPECT_TRUE(Reaches(&events, [](const json& state) {
    return state["daemons"].empty() && state["trouble"] != "";
  })) << events.state.dump(2);
  daemon = StartDaemon({"daemon/ferryd"}, run);
  EXPECT_TRUE(Reaches(&events, shows(daemon->pid()))) << events.state.dump(2);
  EXPECT_EQ(events.state["trouble"], "");
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->WaitCleanly().exit_code, 0);
}

// Other users see the words of every process: the browser gets a file that only this user can read.
TEST_F(WebTest, OpensABrowserWithoutSayingTheAddressToOthers) {
  Start(2, 1, "unmatched");
  const TempDirectory folder;
  const std::string opener = folder / "xdg-open";
  std::ofstream(opener) << "#!/bin/sh\n"
                           "stat -c %a \"$1\" >" +
                               (folder / "mode") + "\ncp \"$1\" " + (folder / "copy") +
                               "\necho \"$@\" >" + (folder / "words.new") + "\nmv " +
                               (folder / "words.new") + " " + (folder / "words") + "\n";
  fs::permissions(opener, fs::perms(0755));
  Command web(
      With({"PATH=" + folder.path() + ":/usr/bin:/bin"},
           {kFerryctl, "web", "--json", "--open", "--run_directory=" + Daemons(*job_).front()}));
  const std::string address = AddressOf(&web);
  ASSERT_TRUE(Eventually([&] { return fs::exists(folder / "words"); }));
  const std::string words = tests::ReadFile(folder / "words");
  EXPECT_THAT(words, Not(HasSubstr("token")));
  EXPECT_EQ(tests::ReadFile(folder / "mode"), "600\n");
  EXPECT_THAT(tests::ReadFile(folder / "copy"), HasSubstr("0;url=" + address + "\""));
  web.Signal(SIGTERM);
  EXPECT_EQ(web.WaitCleanly().exit_code, 0) << "the file goes with the page";
}

TEST_F(WebTest, SaysAtOnceThatThereIsNoDaemon) {
  const CommandResult result = RunCommand({kFerryctl, "web", "--run_directory=/nonexistent/x"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no ferryd serves /nonexistent/x"));
}

// As the user's service: it is there before the daemon, and its log does not tell the address.
TEST_F(WebTest, AServiceWaitsForADaemonAndWritesItsAddress) {
  const TempDirectory folder;
  const std::string file = folder / "address";
  std::ofstream(file) << "of a page that was killed\n";
  const std::string place = folder / "run";
  Command web({kFerryctl, "web", "--address-file=" + file, "--run_directory=" + place});
  ASSERT_TRUE(Eventually([&] { return tests::ReadFile(file).find("http://127.0.0.1:") == 0; }))
      << tests::ReadFile(file);
  const auto mode = fs::status(file).permissions();
  EXPECT_EQ(mode, fs::perms::owner_read | fs::perms::owner_write);
  std::string address = tests::ReadFile(file);
  ASSERT_EQ(address.back(), '\n');
  address.pop_back();
  WebEvents events((WebVisitor(address)));
  ASSERT_TRUE(Reaches(&events, [](const json& state) { return state["trouble"] != ""; }));
  const std::unique_ptr<Command> daemon = StartDaemon({"daemon/ferryd"}, place);
  EXPECT_TRUE(Reaches(&events, [](const json& state) {
    return state["trouble"] == "" && state["daemons"].size() == 1;
  })) << events.state.dump(2);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->WaitCleanly().exit_code, 0);
  web.Signal(SIGTERM);
  const CommandResult result = web.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(fs::exists(file));
}

// ---- Two users ----

constexpr char kAnn[] = "1234567";
constexpr char kBob[] = "7654321";

class WebUsersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, to become several users";
    }
    const CommandResult result = RunCommand({"/bin/sh", "-c", Setpriv(kAnn) + " true"});
    if (result.exit_code != 0) {
      GTEST_SKIP() << "setpriv does not work here: " << result.err;
    }
    fs::permissions(directory_.path(), fs::perms(0755));
    for (const char* file : {"daemon/ferryd", "daemon/ferry-worker", "tools/ferryrun/ferryrun",
                             kFerryctl, kWaits, "client/libferry.so.0"}) {
      fs::copy_file(file, directory_ / fs::path(file).filename());
    }
    daemon_ = StartDaemon({directory_ / "ferryd"}, directory_ / "run");
  }
  void TearDown() override {
    for (auto& command : commands_) {
      command->Signal(SIGTERM);
      command->Wait();
    }
    if (daemon_ != nullptr) {
      daemon_->Signal(SIGTERM);
      EXPECT_EQ(daemon_->WaitCleanly().exit_code, 0);
    }
  }
  static std::string Setpriv(const std::string& uid) {
    return "setpriv --reuid=" + uid + " --regid=" + uid + " --clear-groups";
  }
  static Words LineAs(const std::string& uid, const std::string& line) {
    return {"/bin/sh", "-c", "cd / && exec " + Setpriv(uid) + " sh -c 'exec " + line + "'"};
  }
  Command* As(const std::string& uid, const std::string& line) {
    commands_.push_back(std::make_unique<Command>(
        LineAs(uid, line),
        Words{"FERRY_RUN_DIRECTORY=" + (directory_ / "run"), "LD_LIBRARY_PATH=" + directory_.path(),
              "BIN=" + directory_.path()}));
    return commands_.back().get();
  }
  void StartJob(const std::string& uid) {
    Command* job = As(uid, "$BIN/ferryrun --no-label -n 2 $BIN/waits unmatched");
    EXPECT_TRUE(job->WaitForOutput("rank 0: under way"));
    EXPECT_TRUE(job->WaitForOutput("rank 1: under way"));
  }

  const TempDirectory directory_;
  std::unique_ptr<Command> daemon_;
  std::vector<std::unique_ptr<Command>> commands_;
};

TEST_F(WebUsersTest, EachSeesHisOwnJobsAndRootAll) {
  StartJob(kAnn);
  StartJob(kBob);
  const std::string ann = AddressOf(As(kAnn, "$BIN/ferryctl web --json"));
  const std::string root = AddressOf(As("0", "$BIN/ferryctl web --json"));

  WebEvents hers((WebVisitor(ann)));
  ASSERT_TRUE(Reaches(&hers, [](const json& state) { return RanksOf(state).size() == 2; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(hers.state.dump(), Not(HasSubstr(kBob)));
    EXPECT_NE(hers.Next(), "");
  }
  EXPECT_EQ(std::to_string(hers.state["uid"].get<unsigned>()), kAnn);
  EXPECT_EQ(std::to_string((*hers.state["jobs"].begin())["uid"].get<unsigned>()), kAnn);

  WebEvents all((WebVisitor(root)));
  EXPECT_TRUE(Reaches(&all, [](const json& state) {
    return state["jobs"].size() == 2 && state["daemons"].begin()->at("users").contains(kBob);
  })) << all.state.dump(2);
}

TEST_F(WebUsersTest, AnotherUserReadsNothing) {
  StartJob(kAnn);
  const std::string ann = AddressOf(As(kAnn, "$BIN/ferryctl web --json"));
  const WebVisitor visitor(ann);
  // All that Bob can find out: the port. Not the token, from the command line or the environment.
  const CommandResult seen = RunCommand(
      {"/bin/sh", "-c", Setpriv(kBob) + " cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ"});
  EXPECT_THAT(seen.out, Not(HasSubstr(visitor.entrance.substr(8))));
  const CommandResult told = RunCommand(
      LineAs(kBob, "bash -c \"exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(visitor.port) +
                       "; printf \\\"GET " + visitor.folder +
                       " HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n\\\" >&3; cat <&3\""));
  EXPECT_EQ(StatusOf(told.out), 403) << told.out << told.err;
  EXPECT_THAT(told.out, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace ferry::e2e

// The page of `ferryctl web` in a real browser, with stand-in jobs of many sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "common/clock.h"
#include "tests/support/browser.h"
#include "tools/ferryctl/web/server.h"

namespace ferry::tools {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

uint64_t UnixMs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

class WebPageTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tests::Browser::IsInstalled()) {
      GTEST_SKIP() << "there is no " << tests::Browser::kProgram << " (Debian's package chromium)";
    }
    begin_ms_ = UnixMs();
  }

  void Open() {
    WebOptions options;
    // A large job is long under way to the browser.
    options.pace.shortest = std::chrono::milliseconds(ranks_ > 128 ? 500 : 100);
    auto started = WebServer::Start(options, {[this] { return TakeLook(); },
                                              [](const RankQuestion& rank) {
                                                return "rank " + std::to_string(rank.rank) +
                                                       " of job " + rank.job_id +
                                                       "\nRECEIVE <b>from 2</b>\n";
                                              }});
    ASSERT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(*started);
    browser_ = std::make_unique<tests::Browser>(width_, 1000);
    browser_->Open(server_->address());
    ASSERT_TRUE(browser_->Awaits("document.getElementById('live').className === 'on'"));
    ASSERT_TRUE(
        browser_->Awaits("model.points.length > 3 && document.querySelector('.job')"
                         " !== null || model.points.length > 30"));
  }
  void TearDown() override {
    if (browser_ != nullptr) {
      EXPECT_THAT(browser_->complaints(), IsEmpty());
    }
  }

  // Each rank sends the more the higher its number; every fourth waits for the one before.
  Look TakeLook() {
    ++looks_;
    Look look;
    look.unix_ms = UnixMs();
    look.monotonic_ns = MonotonicNs();
    look.uid = 1000;
    const uint64_t age_ms = look.unix_ms - begin_ms_;
    for (uint32_t node = 0; node < nodes_; ++node) {
      AddDaemon(node, age_ms, &look);
    }
    return look;
  }
  void AddDaemon(uint32_t node, uint64_t age_ms, Look* look) const {
    DaemonLook& daemon = look->daemons.emplace_back();
    daemon.run_directory = "/run/ferry" + std::to_string(node);
    daemon.status.set_pid(1000 + node);
    daemon.status.set_state("serving");
    daemon.status.mutable_node()->set_name(host_ + std::to_string(node));
    daemon.status.set_uptime_ms(100'000 + age_ms);
    daemon.status.set_cpu_time_us(age_ms * 20);
    daemon.status.set_resident_bytes(24 << 20);
    daemon.status.set_sessions(ranks_ / nodes_);
    control::UserStatus* user = daemon.status.add_users();
    user->set_uid(1000);
    user->set_sessions(ranks_ / nodes_);
    user->set_sessions_limit(64);
    user->set_pinned_bytes(3 << 20);
    user->set_pinned_bytes_limit(1 << 30);
    control::NicStatus* nic = daemon.nics.add_nics();
    nic->set_provider("tcp");
    nic->set_domain("eth0");
    nic->set_bytes_sent(age_ms * 300'000);
    nic->set_bytes_received(age_ms * 290'000);
    control::GpuStatus* gpu = daemon.gpus.add_gpus();
    gpu->set_backend("cuda");
    gpu->set_name("a GPU");
    gpu->set_total_bytes(uint64_t{80} << 30);
    control::JobStatus* job = daemon.status.add_jobs();
    job->set_job_id(job_);
    job->set_size(ranks_);
    job->set_joined(ranks_);
    job->set_uid(1000);
    job->set_state("running");
    for (uint32_t rank = node * ranks_ / nodes_; rank < (node + 1) * ranks_ / nodes_; ++rank) {
      AddRank(rank, node, age_ms, &daemon);
    }
  }
  void AddRank(uint32_t rank, uint32_t node, uint64_t age_ms, DaemonLook* daemon) const {
    control::SessionStatus* session = daemon->sessions.add_sessions();
    session->set_job_id(job_);
    session->set_rank(rank);
    session->set_pid(5000 + rank);
    session->set_state("joined");
    session->set_bytes_sent(age_ms * 200'000 * (rank + 1) / ranks_);
    session->set_bytes_received(age_ms * 190'000 * (rank + 1) / ranks_);
    control::RankWait* wait = daemon->why.add_ranks();
    wait->set_job_id(job_);
    wait->set_rank(rank);
    wait->set_node(node);
    wait->set_pid(5000 + rank);
    wait->add_chain(rank);
    wait->set_state("computes");
    if (culprit_ >= 0) {
      if (rank != static_cast<uint32_t>(culprit_)) {
        WaitForNext(rank, age_ms, wait);
      }
    } else if (rank % 4 == 3) {
      wait->set_state("waits");
      wait->set_waits_ms(2000 + age_ms);
      wait->add_chain(rank - 1);
      wait->set_verdict("rank " + std::to_string(rank) + " waits for rank " +
                        std::to_string(rank - 1) + ", which " + does_);
    } else if (rank % 8 == 6) {
      wait->set_state("stopped");
      wait->set_detail("is stopped by a signal");
    }
    for (const auto& [name, rate] :
         {std::pair("path_cell_bytes", 1000), std::pair("path_process_vm_bytes", 150'000),
          std::pair("path_rdma_bytes", 40'000)}) {
      control::CounterValue* counter = daemon->counters.add_counters();
      counter->set_scope("job " + job_ + " rank " + std::to_string(rank));
      counter->set_name(name);
      counter->set_value(age_ms * static_cast<uint64_t>(rate));
    }
    if (nodes_ > 1) {
      control::LinkStatus* link = daemon->links.add_links();
      link->set_job_id(job_);
      link->set_rank(rank);
      link->set_peer((rank + ranks_ / nodes_) % ranks_);
      link->set_node((node + 1) % nodes_);
      link->set_state(rank % 2 == 0 ? "up" : "none");
      link->set_out(rank % 2 == 0 ? "link" : "daemon");
      link->set_daemon_bytes(age_ms * 60'000);
    }
  }
  // As daemons tell it: to the end of the chain.
  void WaitForNext(uint32_t rank, uint64_t age_ms, control::RankWait* wait) const {
    const auto culprit = static_cast<uint32_t>(culprit_);
    wait->set_state("waits");
    wait->set_waits_ms(waited_ms_ + age_ms);
    wait->add_calls()->set_name(call_);
    for (uint32_t next = rank; next != culprit;) {
      wait->add_chain(next = (next + 1) % ranks_);
    }
    wait->set_verdict("rank " + std::to_string(rank) + " waits for rank " +
                      std::to_string((rank + 1) % ranks_) + ", which " + does_);
  }
  // How many of the page's elements there are.
  size_t Count(const std::string& selector) {
    const auto count = browser_->Evaluate("document.querySelectorAll('" + selector + "').length");
    return count.is_number() ? count.get<size_t>() : SIZE_MAX;
  }
  std::string TextOf(const std::string& selector) {
    const auto text = browser_->Evaluate("document.querySelector('" + selector + "').textContent");
    return text.is_string() ? text.get<std::string>() : "";
  }
  void Pictures(const std::string& name) {
    browser_->Picture(name);
    browser_->SetDark(true);
    browser_->Evaluate("draw()");
    browser_->Picture(name + "_dark");
  }

  // Waits until the page has had so many more events, and has drawn them.
  void AwaitEvents(int count) {
    browser_->Evaluate("window.before = model.points.length");
    ASSERT_TRUE(
        browser_->Awaits("model.points.length >= window.before + " + std::to_string(count)));
    browser_->Evaluate("draw()");
  }
  void Press(const std::string& key) {
    browser_->Evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '" +
                       key + "', bubbles: true, cancelable: true}))");
  }
  void Click(const std::string& selector) {
    browser_->Evaluate("document.querySelector('" + selector +
                       "').dispatchEvent(new MouseEvent('click', {bubbles: true}))");
  }
  nlohmann::json Focused() {
    return browser_->Evaluate("Number(document.activeElement.dataset.rank)");
  }

  int width_ = 1280;
  int32_t culprit_ = -1;       // all others wait for it, each for the next one
  uint64_t waited_ms_ = 9000;  // they do, at first
  std::string call_ = "MPI_Recv";
  uint32_t ranks_ = 4;
  uint32_t nodes_ = 1;
  std::string job_ = "halo";
  std::string host_ = "node";
  std::string does_ = "computes";
  uint64_t begin_ms_ = 0;
  std::atomic<uint64_t> looks_ = 0;
  std::unique_ptr<WebServer> server_;
  std::unique_ptr<tests::Browser> browser_;
};

TEST_F(WebPageTest, FourRanksAreBoxesAndAWaitIsRedWithItsSentence) {
  Open();
  EXPECT_EQ(Count(".rank"), 4U);
  EXPECT_EQ(Count(".rank .k-stuck"), 1U);
  EXPECT_EQ(Count(".wait"), 1U);
  EXPECT_EQ(Count(".bytes"), 8U) << "of each rank one out and one in";
  EXPECT_THAT(TextOf(".job .alarm"), HasSubstr("rank 3 waits for rank 2, which computes, for "));
  EXPECT_THAT(TextOf("#nics"), HasSubstr("eth0"));
  EXPECT_THAT(TextOf("#gpus"), HasSubstr("80 GiB"));
  EXPECT_THAT(TextOf("#quotas"), HasSubstr("4 of 64"));
  EXPECT_THAT(TextOf("#paths"), HasSubstr("MiB/s"));
  browser_->Evaluate(
      "document.querySelector('[data-rank=\"3\"]').dispatchEvent("
      "new MouseEvent('click'))");
  ASSERT_TRUE(browser_->Awaits("document.querySelector('.details') !== null"));
  EXPECT_THAT(TextOf(".details"), HasSubstr("5003"));
  ASSERT_TRUE(browser_->Awaits("document.querySelector('.why').textContent !== ''"));
  EXPECT_EQ(TextOf(".why"), "rank 3 of job halo\nRECEIVE <b>from 2</b>\n");
  Pictures("four");
}

// The longest name of a call, and a wait of more than a minute.
TEST_F(WebPageTest, TheWordsInABoxDoNotOverlap) {
  ranks_ = 16;
  culprit_ = 15;
  call_ = "MPI_Neighbor_alltoallv_init";
  waited_ms_ = 3'540'000;
  Open();
  EXPECT_EQ(Count(".rank"), 16U);
  EXPECT_THAT(TextOf(".rank"), testing::AllOf(HasSubstr("MPI_Neighb"), HasSubstr("59 min ")));
  const std::string overlapping =
      "[...document.querySelectorAll('.rank')].filter(rank => {"
      " const words = [...rank.querySelectorAll('text')].filter(text => text.textContent !== '')"
      "  .map(text => text.getBBox());"
      " return words.some((a, i) => words.some((b, j) => i < j && a.x < b.x + b.width &&"
      "  b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)); }).length";
  EXPECT_EQ(browser_->Evaluate(overlapping), 0);
  EXPECT_GT(browser_->Evaluate("document.querySelectorAll('.rank text').length"), 60);
  Pictures("words");
}

TEST_F(WebPageTest, TwoNodesHaveArrowsBetweenThem) {
  ranks_ = 8;
  nodes_ = 2;
  Open();
  EXPECT_EQ(Count(".rank"), 8U);
  EXPECT_EQ(Count(".frame"), 2U);
  EXPECT_GT(Count(".by-daemon"), 0U);
  EXPECT_EQ(Count(".wait"), 2U);
  Pictures("two_nodes");
}

TEST_F(WebPageTest, SixtyFourRanksAreTiles) {
  ranks_ = 64;
  Open();
  EXPECT_EQ(Count(".rank"), 64U);
  EXPECT_EQ(Count(".rank .k-stuck"), 16U);
  EXPECT_EQ(Count(".rank .k-stopped"), 8U);
  EXPECT_EQ(Count(".job > .alarm"), 5U) << "not a line for each";
  Pictures("sixty_four");
}

TEST_F(WebPageTest, AThousandRanksAreCellsOfTheirNodes) {
  ranks_ = 1024;
  nodes_ = 16;
  Open();
  EXPECT_EQ(Count(".panel"), 16U);
  EXPECT_EQ(Count(".cell"), 1024U);
  EXPECT_EQ(Count(".cell.k-stuck"), 256U);
  EXPECT_EQ(Count(".cell.k-stopped"), 128U);
  EXPECT_EQ(Count(".flow"), 16U) << "one from node to node, however many ranks";
  EXPECT_EQ(Count(".wait"), 0U) << "each waits for a rank of its node";
  EXPECT_EQ(Count(".job > .alarm"), 5U);
  EXPECT_THAT(TextOf(".job"), HasSubstr("and 251 more such waits"));
  EXPECT_LT(Count("*"), 3000U);
  // The sums are those of all ranks, though each is told with one digit.
  ASSERT_TRUE(browser_->Awaits("Math.abs(model.state.jobs.halo.rates[15] / 12.4e9 - 1) < .2"))
      << browser_->Evaluate("model.state.jobs.halo.rates").dump();
  Pictures("thousand");
}

TEST_F(WebPageTest, CellsAreDrawnAgainOnlyWhereSomethingHasChanged) {
  ranks_ = 1024;
  nodes_ = 16;
  Open();
  browser_->Evaluate("draw()");
  const auto before = browser_->Evaluate("drawn.cells");
  AwaitEvents(5);
  EXPECT_EQ(browser_->Evaluate("drawn.cells"), before) << "ages and rates are not in the cells";
  browser_->Evaluate(
      "take('change', {t: model.now, change: {jobs: {halo: {ranks: {72: {state: 'stopped'}}}}}});"
      "draw()");
  EXPECT_EQ(browser_->Evaluate("drawn.cells - " + before.dump()), 64) << "those of its node";
}

TEST_F(WebPageTest, AThousandRanksThatWaitForOneLeadToIt) {
  ranks_ = 1024;
  nodes_ = 16;
  culprit_ = 520;
  does_ = "computes outside Ferry";
  Open();
  EXPECT_EQ(Count(".cell.k-stuck"), 1023U);
  EXPECT_EQ(Count(".job > .alarm"), 1U);
  EXPECT_THAT(TextOf(".job > .alarm"),
              HasSubstr("rank 519 waits for rank 520, which computes outside Ferry, for "));
  EXPECT_THAT(TextOf(".job > .alarm"), HasSubstr("1023 ranks wait for rank 520, directly or "));
  EXPECT_EQ(Count(".cell.cause"), 1U);
  EXPECT_EQ(browser_->Evaluate("document.querySelector('.cause').dataset.rank"), "520");
  EXPECT_EQ(Count(".wait.of-many"), 15U) << "one from each other node";
  Pictures("culprit");
  Click("[data-rank=\"100\"]");
  ASSERT_TRUE(browser_->Awaits("document.querySelector('.details') !== null"));
  EXPECT_THAT(TextOf(".details"), HasSubstr("waits for rank 101 in MPI_Recv"));
  EXPECT_THAT(TextOf(".details"), HasSubstr("rank 101, rank 102, rank 103"));
  EXPECT_EQ(Count(".wait.link"), 15U);
  browser_->Picture("culprit_chosen");
}

TEST_F(WebPageTest, KeysLeadFromRankToRank) {
  ranks_ = 1024;
  nodes_ = 16;
  Open();
  EXPECT_EQ(Count("svg [tabindex=\"0\"]"), 1U) << "the Tab key need not pass all of them";
  browser_->Evaluate("document.querySelector('svg [tabindex=\"0\"]').focus()");
  EXPECT_EQ(Focused(), 0);
  Press("ArrowRight");
  EXPECT_EQ(Focused(), 1);
  Press("ArrowDown");
  EXPECT_EQ(Focused(), 17);
  AwaitEvents(2);
  EXPECT_EQ(Focused(), 17) << "the page is drawn again around it";
  EXPECT_EQ(Count("svg [tabindex=\"0\"]"), 1U);
  Press("Enter");
  ASSERT_TRUE(browser_->Awaits("document.querySelector('.details') !== null"));
  EXPECT_THAT(TextOf(".details"), HasSubstr("rank 17 of "));
}

TEST_F(WebPageTest, APhoneShowsAllOfItWithoutMovingSideways) {
  width_ = 360;
  ranks_ = 1024;
  nodes_ = 16;
  culprit_ = 520;
  Open();
  EXPECT_EQ(Count(".cell"), 1024U);
  EXPECT_LE(browser_->Evaluate("document.documentElement.scrollWidth"), 360);
  EXPECT_LE(browser_->Evaluate("Math.max(...[...document.querySelectorAll('.cell, .panel')]"
                               ".map((each) => each.getBoundingClientRect().right))"),
            360);
  browser_->Picture("phone");
}

TEST_F(WebPageTest, ASmallJobFitsOntoAPhone) {
  width_ = 360;
  ranks_ = 8;
  nodes_ = 2;
  Open();
  EXPECT_EQ(Count(".rank"), 8U);
  EXPECT_LE(browser_->Evaluate("document.documentElement.scrollWidth"), 360);
  browser_->Picture("phone_small");
}

TEST_F(WebPageTest, ThousandsOfRanksAreNodesThatOpen) {
  ranks_ = 5120;
  nodes_ = 16;
  Open();
  EXPECT_EQ(Count(".frame"), 16U);
  EXPECT_EQ(Count(".rank"), 0U);
  Click(".group");
  ASSERT_TRUE(browser_->Awaits("document.querySelectorAll('.rank').length === 320"));
  browser_->Picture("thousands_open");
  EXPECT_LT(Count("*"), 2500U) << "closed nodes cost a bar each";
}

TEST_F(WebPageTest, NamesAreNeverHtml) {
  job_ = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>";
  host_ = "</title><style>*{display:none}</style>&lt;b&gt;";
  does_ = "\"><svg onload=\"document.title='taken'\"><b id=taken>";
  Open();
  EXPECT_EQ(Count(".rank"), 4U);
  EXPECT_EQ(Count("img, b#taken, main script, main style"), 0U);
  EXPECT_EQ(browser_->Evaluate("document.title"), "Ferry");
  EXPECT_THAT(TextOf(".job h2"), HasSubstr("<img src=x onerror="));
  EXPECT_THAT(TextOf(".job .alarm"), HasSubstr("\"><svg onload="));
  EXPECT_THAT(TextOf("#who"), HasSubstr("</title>"));
  browser_->Picture("names");
}

TEST_F(WebPageTest, ANameOfJavascriptsOwnIsAName) {
  job_ = "__proto__";
  Open();
  EXPECT_EQ(Count(".job"), 1U);
  EXPECT_EQ(Count(".rank"), 4U);
  EXPECT_EQ(browser_->Evaluate("Object.keys(Object.prototype).length"), 0);
}

TEST_F(WebPageTest, TheStateIsThatOfTheServer) {
  Open();
  // The page applies changes by itself; a window that opens now begins with a snapshot.
  const std::string facts =
      "JSON.stringify(Object.values(model.state.jobs.halo.ranks)"
      ".map((rank) => [rank.pid, rank.state, rank.chain]))";
  const auto before = browser_->Evaluate(facts);
  browser_->Open(server_->address());
  ASSERT_TRUE(browser_->Awaits("document.getElementById('live').className === 'on'"));
  EXPECT_EQ(browser_->Evaluate(facts), before);
  EXPECT_EQ(browser_->Evaluate("document.cookie"), "") << "scripts must not read it";
}

}  // namespace
}  // namespace ferry::tools

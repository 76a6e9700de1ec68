// The output of the tools: tables, views of a daemon's answers, plots.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tools/display/table.h"
#include "tools/display/view.h"
#include "tools/tune/plot.h"

namespace ferry::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

// ---- Tables

TEST(TableTest, AlignsColumns) {
  Table table({{"NAME"}, {"SIZE", Align::kRight}, {"NOTE"}});
  table.AddRow({"a", "5", "first"});
  table.AddRow({"longer", "12345", ""});
  EXPECT_EQ(table.Text(),
            "NAME     SIZE  NOTE\n"
            "a           5  first\n"
            "longer  12345  -\n");
}

TEST(TableTest, CountsCharactersNotBytes) {
  Table table({{"N"}, {"M"}});
  table.AddRow({"é", "1"});
  table.AddRow({"ab", "2"});
  EXPECT_EQ(table.Text(), "N   M\né   1\nab  2\n");
}

TEST(TableTest, HasOnlyItsHeaderWhenEmpty) {
  const Table table({{"A"}, {"B"}});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Text(), "A  B\n");
}

TEST(TableTest, ShowsBytesInTheLargestFittingUnit) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.0 KiB");
  EXPECT_EQ(BytesText(1024), "1 KiB");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(64 << 20), "64 MiB");
  EXPECT_EQ(BytesText((100 << 20) + 1), "100 MiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "16 EiB");
}

TEST(TableTest, ShowsDurationsInTwoUnits) {
  EXPECT_EQ(DurationText(0), "0 ms");
  EXPECT_EQ(DurationText(999), "999 ms");
  EXPECT_EQ(DurationText(59'999), "59 s");
  EXPECT_EQ(DurationText(185'000), "3 min 5 s");
  EXPECT_EQ(DurationText(7'440'000), "2 h 4 min");
  EXPECT_EQ(DurationText(442'800'000), "5 d 3 h");
}

TEST(TableTest, FitsIntoATerminalAsSeveralTables) {
  Table table({{"KEY"}, {"FIRST", Align::kRight}, {"SECOND"}, {"THIRD"}});
  table.AddRow({"a", "1", "two", "x"});
  table.AddRow({"bcd", "22", "", "a long cell"});
  EXPECT_EQ(table.FittedText({80, false}), table.Text());
  EXPECT_EQ(table.FittedText({18, false}),
            "KEY  FIRST  SECOND\n"
            "a        1  two\n"
            "bcd     22  -\n"
            "\n"
            "KEY  THIRD\n"
            "a    x\n"
            "bcd  a long cell\n");
  EXPECT_EQ(table.FittedText({18, false}, 2),
            "KEY  FIRST  SECOND\n"
            "a        1  two\n"
            "bcd     22  -\n"
            "\n"
            "KEY  FIRST  THIRD\n"
            "a        1  x\n"
            "bcd     22  a long cell\n")
      << "what is too wide by itself is not lost";
}

TEST(TableTest, ColoursTakeNoRoom) {
  Table table({{"STATE", Align::kLeft, true}, {"NAME"}});
  table.AddRow({"died", "up"});
  table.AddRow({"sleepy", "x"});
  EXPECT_EQ(table.Text({80, true}),
            "\033[1mSTATE\033[0m   \033[1mNAME\033[0m\n"
            "\033[31mdied\033[0m    up\n"
            "sleepy  x\n");
}

// ---- Terminals ----

class TerminalTest : public testing::Test {
 protected:
  TerminalTest() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(grantpt(master_), 0);
    EXPECT_EQ(unlockpt(master_), 0);
    terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    const winsize size = {50, 132, 0, 0};
    EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  ~TerminalTest() override {
    close(terminal_);
    close(master_);
  }
  int master_;
  int terminal_ = -1;
};

TEST_F(TerminalTest, HasItsWidthAndColoursUnlessSomebodyWantsNone) {
  const char* const usual[] = {"TERM=xterm", "NO_COLOR=", nullptr};
  const char* const plain[] = {"TERM=xterm", "NO_COLOR=1", nullptr};
  const char* const dumb[] = {"TERM=dumb", nullptr};
  const char* const none[] = {nullptr};
  EXPECT_EQ(TerminalOf(terminal_, usual).width, 132U);
  EXPECT_TRUE(TerminalOf(terminal_, usual).colours);
  for (const auto& environment : {plain, dumb, none}) {
    EXPECT_FALSE(TerminalOf(terminal_, environment).colours);
  }
}

TEST_F(TerminalTest, WhatIsNoneIsOfTheUsualWidthAndPlain) {
  const char* const usual[] = {"TERM=xterm", nullptr};
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(TerminalOf(ends[1], usual).width, 80U);
  EXPECT_FALSE(TerminalOf(ends[1], usual).colours);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TerminalTest, SentencesHaveTheColourOfTheirFirstWord) {
  const Terminal coloured{80, true};
  EXPECT_EQ(Coloured("deadlock: rank 0 waits", coloured), "\033[31mdeadlock: rank 0 waits\033[0m");
  EXPECT_EQ(Coloured("upside", coloured), "upside");
  EXPECT_EQ(Coloured("died", {80, false}), "died");
}

// ---- Views

TEST(ViewTest, KeepsLargeNumbersAsNumbersInJson) {
  control::SessionsReply reply;
  control::SessionStatus* session = reply.add_sessions();
  session->set_job_id("abc");
  session->set_rank(3);
  session->set_bytes_sent(5'000'000'000);
  control::RankCall* call = session->add_calls();
  call->set_name("MPI_Recv");
  call->set_phrase("MPI_Recv from rank 1");
  const View view = MakeView(reply);
  EXPECT_EQ(view.json["sessions"][0]["bytes_sent"].get<uint64_t>(), 5'000'000'000);
  EXPECT_EQ(view.json["sessions"][0]["job_id"], "abc");
  EXPECT_EQ(view.text.find("RANK "), 0u);
  EXPECT_NE(view.text.find("\nabc.3 "), std::string::npos) << view.text;
  EXPECT_NE(view.text.find(" 4.7 GiB "), std::string::npos) << view.text;
  EXPECT_NE(view.text.find("  MPI_Recv from rank 1\n"), std::string::npos) << view.text;
  EXPECT_EQ(view.json["sessions"][0]["calls"][0]["name"], "MPI_Recv");
}

TEST(ViewTest, SaysThatThereIsNothing) {
  EXPECT_EQ(MakeView(control::SessionsReply()).text, "no rank is attached\n");
  EXPECT_EQ(MakeView(control::SessionsReply()).json.dump(), R"({"sessions":[]})");
}

TEST(ViewTest, LeavesOutAnUnknownNumaNode) {
  control::GpusReply reply;
  control::GpuStatus* gpu = reply.add_gpus();
  gpu->set_backend("host");
  gpu->set_numa_node(-1);
  gpu->set_nic_distance(-1);
  gpu->set_total_bytes(1 << 30);
  gpu->set_free_bytes(512 << 20);
  gpu->set_ipc(true);
  gpu->set_stream_words("cpu");
  EXPECT_EQ(MakeView(reply).text,
            "BACKEND  DEVICE  NAME  PCI  NUMA  CPUS  NIC  DISTANCE  MEMORY     FREE   IPC\n"
            "host          0  -     -       -  -     -           -   1 GiB  512 MiB  true\n"
            "\n"
            "BACKEND  DEVICE  DMABUF  TO THE NIC  MANAGED  STREAM WORDS  KERNELS  NOTE\n"
            "host          0   false  -             false  cpu             false  -\n");
}

TEST(ViewTest, SaysWhyABackendIsNotThere) {
  control::GpusReply reply;
  control::GpuBackendStatus* cuda = reply.add_backends();
  cuda->set_name("cuda");
  cuda->set_note("CUDA is not installed");
  control::GpuBackendStatus* host = reply.add_backends();
  host->set_name("host");
  host->set_version("emulated");
  host->set_devices(2);
  host->set_in_use(true);
  const View view = MakeView(reply);
  EXPECT_EQ(view.text,
            "no devices\n\n"
            "BACKEND  VERSION   DEVICES  IN USE  NOTE\n"
            "cuda     -               0   false  CUDA is not installed\n"
            "host     emulated        2    true  -\n");
  EXPECT_EQ(view.json["backends"][0]["note"], "CUDA is not installed");
}

TEST(ViewTest, ShowsPlaces) {
  control::GpusReply gpus;
  control::GpuStatus* gpu = gpus.add_gpus();
  gpu->set_cpus("8-15");
  gpu->set_nic("ib1");
  gpu->set_nic_distance(5);
  EXPECT_EQ(MakeView(gpus).json["gpus"][0]["nic_distance"], 5);
  EXPECT_NE(MakeView(gpus).text.find("8-15  ib1         5"), std::string::npos);
  control::NicsReply nics;
  control::NicStatus* nic = nics.add_nics();
  nic->set_pci("0000:b1:00.0");
  nic->set_progress_cpus("9");
  nic->set_staging_node(-1);
  const View view = MakeView(nics);
  EXPECT_EQ(view.json["nics"][0]["staging_node"], -1);
  EXPECT_NE(view.text.find("0000:b1:00.0     0  -     9\n"), std::string::npos) << view.text;
  EXPECT_NE(view.text.find("DOMAIN  STAGING AT  DEVICE MEMORY\n-                -  -\n"),
            std::string::npos)
      << view.text;
}

// The longest line.
size_t WidthOf(const std::string& text) {
  size_t width = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    width = std::max(width, end - begin);
    begin = end + 1;
  }
  return width;
}

// As many figures as there may be.
TEST(ViewTest, SessionsInterfacesAndDevicesFitIntoTheTerminal) {
  control::SessionsReply sessions;
  control::SessionStatus* session = sessions.add_sessions();
  session->set_job_id("a1b2c3d4e5f6");
  session->set_rank(1023);
  session->set_pid(4'194'303);
  session->set_uid(4'294'967'294);
  session->set_state("attached");
  session->set_messages_sent(123'456'789'012);
  session->set_bytes_sent(uint64_t{1023} << 40);
  session->set_messages_received(123'456'789'012);
  session->set_bytes_received(uint64_t{1023} << 40);
  session->set_cpus("0-15,32-47,64-79");
  session->set_nic("mlx5_0");
  control::NicsReply nics;
  control::NicStatus* nic = nics.add_nics();
  nic->set_provider("verbs;ofi_rxm");
  nic->set_fabric("192.168.100.0/24");
  nic->set_domain("mlx5_0");
  nic->set_address("fi_sockaddr_in://192.168.100.217:65535");
  nic->set_messages_sent(123'456'789'012);
  nic->set_messages_received(123'456'789'012);
  nic->set_cpus("0-15,32-47,64-79");
  nic->set_progress_cpus("0-15,32-47");
  nic->set_pci("0000:b1:00.0");
  control::GpusReply gpus;
  control::GpuStatus* gpu = gpus.add_gpus();
  gpu->set_backend("level_zero");
  gpu->set_name("Intel(R) Data Center GPU Max 1550");
  gpu->set_pci("0000:b1:00.0");
  gpu->set_cpus("0-15,32-47,64-79");
  gpu->set_nic("mlx5_0");
  gpu->set_stream_words("kernel");
  for (const size_t width : {80U, 60U, 200U}) {
    const Terminal terminal{width, false};
    EXPECT_LE(WidthOf(MakeView(sessions, terminal).text), width);
    EXPECT_LE(WidthOf(MakeView(nics, terminal).text), width);
    EXPECT_LE(WidthOf(MakeView(gpus, terminal).text), width);
  }
  EXPECT_LE(WidthOf(MakeView(sessions).text), 80U) << "into a pipe, too";
  for (const char* title : {"REQUESTS", "UNEXPECTED", "QUEUED", "CPUS", "DISTANCE"}) {
    EXPECT_NE(MakeView(sessions).text.find(title), std::string::npos) << title;
  }
}

TEST(ViewTest, ShowsJobsAndPeersUnderTheStatus) {
  control::StatusReply reply;
  reply.mutable_node()->set_name("n0");
  reply.mutable_node()->set_incarnation(18446744073709551615u);
  reply.mutable_node()->set_provider("tcp");
  reply.mutable_node()->set_control_address("127.0.0.1:5");
  reply.set_state("serving");
  reply.set_pid(12);
  reply.set_uptime_ms(1500);
  reply.set_run_directory("/run/ferry");
  control::PeerStatus* peer = reply.add_peers();
  peer->set_name("n1");
  peer->set_last_heard_ms(20);
  peer->set_trouble("hung up");
  const View view = MakeView(reply);
  EXPECT_EQ(view.text,
            "node n0: serving, pid 12, up 1 s\n"
            "run directory /run/ferry, control 127.0.0.1:5, provider tcp\n"
            "0 sessions, 0 regions of 0 B\n"
            "\n"
            "PEER  ADDRESS  STATE  LAST HEARD  TROUBLE\n"
            "n1    -        -       20 ms ago  hung up\n");
  EXPECT_EQ(view.json["node"]["name"], "n0");
  // Numbers of other programs' JSON have 53 bits.
  EXPECT_EQ(view.json["node"]["incarnation"], "18446744073709551615");
  EXPECT_EQ(view.json["peers"][0]["incarnation"], "0");
  EXPECT_TRUE(view.json["jobs"].empty());
}

TEST(ViewTest, ShowsWhatEachUserHoldsOfHisQuotas) {
  control::StatusReply reply;
  control::UserStatus* user = reply.add_users();
  user->set_uid(1001);
  user->set_jobs(1);
  user->set_jobs_limit(256);
  user->set_sessions(4);
  user->set_pinned_bytes(256 << 20);
  user->set_pinned_bytes_limit(1 << 30);
  user->set_requests(2);
  user->set_requests_room(16385);
  user->set_requests_limit(4 << 20);
  user->set_links(3);
  user->set_links_limit(8);
  user->set_nodes(5);
  user->set_nodes_limit(4096);
  const View view = MakeView(reply);
  EXPECT_NE(view.text.find("USER  JOBS      SESSIONS  REGIONS  PINNED            REQUESTS          "
                           "          LINKS   "
                           "NODES\n"
                           "1001  1 of 256  4         0        256 MiB of 1 GiB  2 (room: 16385 of "
                           "4194304)  3 of 8  "
                           "5 of 4096\n"),
            std::string::npos)
      << view.text;
  EXPECT_EQ(view.json["users"][0]["pinned_bytes"], 256 << 20);
  EXPECT_EQ(view.json["users"][0]["requests"], 2);
  EXPECT_EQ(view.json["users"][0]["requests_room"], 16385);
  EXPECT_EQ(view.json["users"][0]["sessions_limit"], 0);
  EXPECT_EQ(view.json["users"][0]["nodes_limit"], 4096);
}

TEST(ViewTest, ShowsDirectLinksAndWhyThereAreNone) {
  control::LinksReply reply;
  control::LinkStatus* up = reply.add_links();
  up->set_job_id("j");
  up->set_peer(4);
  up->set_node(1);
  up->set_state("up");
  up->set_for_ms(12'000);
  up->set_out("link");
  up->set_in("to daemon");
  control::LinkStatus* none = reply.add_links();
  none->set_job_id("j");
  none->set_rank(1);
  none->set_peer(5);
  none->set_node(1);
  none->set_state("none");
  none->set_out("daemon");
  none->set_in("daemon");
  none->set_daemon_messages(31);
  none->set_daemon_bytes(248 << 10);
  none->set_why("after 31 of 256 messages");
  control::LinkTotals* totals = reply.add_totals();
  totals->set_job_id("j");
  totals->set_links(1);
  totals->set_bytes_sent(513 << 20);
  reply.set_refusal("the option direct_links is off");
  const View view = MakeView(reply, {200, false});
  EXPECT_EQ(view.text,
            "RANK  PEER  NODE  LINK   FOR  OUT BY  IN BY      BY DAEMON     SIZE  WHY NOT\n"
            "j.0      4     1  up    12 s  link    to daemon          0      0 B  -\n"
            "j.1      5     1  none  0 ms  daemon  daemon            31  248 KiB  after 31 of 256 "
            "messages\n"
            "\n"
            "RANK  LINKS  SENT      OUT  RECEIVED   IN  ERRORS\n"
            "j.0       1     0  513 MiB         0  0 B       0\n"
            "\n"
            "no direct links: the option direct_links is off\n");
  EXPECT_EQ(view.json["links"][0]["out"], "link");
  EXPECT_EQ(view.json["links"][1]["daemon_bytes"], 248 << 10);
  EXPECT_EQ(view.json["totals"][0]["bytes_sent"], 513 << 20);
  EXPECT_EQ(MakeView(control::LinksReply()).text, "no pair of ranks of different nodes\n");
}

TEST(ViewTest, ShowsWhatIsRegisteredWithTheNetwork) {
  control::StatusReply reply;
  EXPECT_FALSE(MakeView(reply).json.contains("registrations"));
  control::RegistrationStatus* registrations = reply.mutable_registrations();
  registrations->set_entries(4);
  registrations->set_entries_limit(16384);
  registrations->set_bytes(256 << 20);
  registrations->set_hits(81233);
  registrations->set_misses(4);
  View view = MakeView(reply);
  EXPECT_NE(view.text.find("\nregistered with the network: 4 of 16384, 256 MiB; hits 81233, misses "
                           "4, evictions 0\n"),
            std::string::npos)
      << view.text;
  EXPECT_EQ(view.json["registrations"]["bytes"], 256 << 20);
  registrations->set_bytes_limit(1 << 30);
  registrations->set_refusals(2);
  registrations->set_waiting(1);
  view = MakeView(reply);
  EXPECT_NE(view.text.find("256 MiB of 1 GiB; "), std::string::npos) << view.text;
  EXPECT_NE(view.text.find("evictions 0, refusals 2, waiting 1\n"), std::string::npos) << view.text;
}

// ---- Plots

Panel PanelOf(const PlotLine& line) {
  Panel panel;
  panel.title = "a < b";
  panel.y_label = "speed";
  panel.lines = {line};
  return panel;
}

TEST(PlotTest, SizesAndNumbersOnTheXAxis) {
  Panel panel = PanelOf({.name = "line", .color = "#123456", .points = {{1024, 1}, {4096, 2}}});
  EXPECT_THAT(Svg("t", "s", {panel}), HasSubstr(">4 KiB</text>"));
  EXPECT_THAT(Svg("t", "s", {panel}), HasSubstr(">size</text>"));
  panel.x_is_bytes = false;
  panel.x_label = "ranks";
  const std::string svg = Svg("t", "s", {panel});
  EXPECT_THAT(svg, HasSubstr(">4096</text>"));
  EXPECT_THAT(svg, HasSubstr(">ranks</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("KiB")));
}

TEST(PlotTest, BarePointsHaveNoLine) {
  PlotLine line{.name = "dots", .color = "#123456", .marks = true, .points = {{1, 1}, {2, 2}}};
  EXPECT_THAT(Svg("t", "s", {PanelOf(line)}), HasSubstr("<path class=\"l\""));
  line.is_bare = true;
  const std::string svg = Svg("t", "s", {PanelOf(line)});
  EXPECT_THAT(svg, Not(HasSubstr("<path class=\"l\"")));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  EXPECT_THAT(svg, HasSubstr(">dots</text>"));
}

TEST(PlotTest, EscapesText) {
  EXPECT_THAT(Svg("t", "s", {PanelOf({.name = "x&y", .color = "#000", .points = {{1, 1}}})}),
              testing::AllOf(HasSubstr("a &lt; b"), HasSubstr("x&amp;y")));
}

}  // namespace
}  // namespace ferry::tools

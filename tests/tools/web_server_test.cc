// The server of `ferryctl web` over real sockets: admission, and what hostile clients cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/web_client.h"
#include "tools/ferryctl/web/server.h"

namespace ferry::tools {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::Between;
using tests::Eventually;
using tests::Request;
using tests::StatusOf;
using tests::Talk;
using tests::WebConnection;
using tests::WebEvents;
using tests::WebVisitor;

class WebServerTest : public testing::Test {
 protected:
  WebServerTest() { options_.pace = {1ms, 10s}; }

  void Start() {
    auto started = WebServer::Start(options_, Inquire());
    ASSERT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(*started);
  }
  Inquiry Inquire() {
    return {[this] { return TakeLook(); },
            [this](const RankQuestion& rank) { return TellWhy(rank); }};
  }
  // Each look differs from the one before, in as many bytes as `filler_` has.
  Look TakeLook() {
    const uint64_t number = ++looks_;
    Look look;
    look.unix_ms = number;
    look.monotonic_ns = MonotonicNs();
    look.trouble = "look " + std::to_string(number) +
                   std::string(filler_, static_cast<char>('a' + number % 26));
    return look;
  }
  uint16_t port() const { return server_->port(); }
  bool Serves() const { return StatusOf(WebVisitor(server_->address()).Get("")) == 200; }

  std::string TellWhy(const RankQuestion& rank) {
    ++asked_;
    is_slow_.wait(true);
    return "rank " + std::to_string(rank.rank) + " of job " + rank.job_id + " waits\n";
  }
  std::string WhyOf(const std::string& query) {
    return Talk(port(), Request(visitor_->folder + "why" + query, visitor_->cookie));
  }

  WebOptions options_;
  std::atomic<uint64_t> looks_ = 0;
  std::atomic<bool> is_slow_ = false;
  std::atomic<int> asked_ = 0;
  size_t filler_ = 0;
  std::optional<WebVisitor> visitor_;
  std::unique_ptr<WebServer> server_;
};

// ---- Admission ----

TEST_F(WebServerTest, TheTokenLeadsToThePageByACookieOfOneFolder) {
  Start();
  EXPECT_THAT(server_->address(),
              testing::StartsWith("http://127.0.0.1:" + std::to_string(port()) + "/?token="));
  const WebVisitor visitor(server_->address());
  const std::string entrance = Talk(port(), Request(visitor.entrance));
  EXPECT_EQ(StatusOf(entrance), 200);
  EXPECT_THAT(entrance, AllOf(HasSubstr("; HttpOnly; SameSite=Strict\r\n"),
                              HasSubstr("0;url=" + visitor.folder + "\"")));
  EXPECT_EQ(visitor.folder.size(), 34U);
  EXPECT_THAT(server_->address(), Not(HasSubstr(visitor.folder.substr(1, 32))));
  const std::string page = visitor.Get("");
  EXPECT_EQ(StatusOf(page), 200);
  EXPECT_THAT(page, AllOf(HasSubstr("<title>Ferry</title>"), Not(HasSubstr("@NONCE@")),
                          Not(HasSubstr("@STYLE@")), Not(HasSubstr("@MODEL@")),
                          Not(HasSubstr("@MAP@")), Not(HasSubstr("@PANELS@"))));
}

TEST_F(WebServerTest, ThePageLoadsNothingFromElsewhere) {
  Start();
  const WebVisitor visitor(server_->address());
  const std::string page = visitor.Get("");
  const std::string nonce = Between(page, "script-src 'nonce-", "'");
  EXPECT_EQ(nonce.size(), 32U);
  EXPECT_THAT(page, AllOf(HasSubstr("default-src 'none'"), HasSubstr("connect-src 'self'"),
                          HasSubstr("frame-ancestors 'none'"), HasSubstr("base-uri 'none'"),
                          HasSubstr("style-src 'nonce-" + nonce + "'"),
                          HasSubstr("<script nonce=\"" + nonce + "\">"),
                          HasSubstr("Referrer-Policy: no-referrer"),
                          HasSubstr("X-Content-Type-Options: nosniff"),
                          HasSubstr("X-Frame-Options: DENY"), HasSubstr("Cache-Control: no-store"),
                          Not(HasSubstr("Access-Control-")), Not(HasSubstr("unsafe-inline"))));
  EXPECT_NE(Between(visitor.Get(""), "script-src 'nonce-", "'"), nonce)
      << "each answer has its own";
  // But for the name of SVG, no address is in it, and nothing makes HTML of text.
  std::string rest = page;
  const std::string svg = "http://www.w3.org/2000/svg";
  for (size_t at = 0; (at = rest.find(svg)) != rest.npos;) {
    rest.erase(at, svg.size());
  }
  EXPECT_THAT(rest, AllOf(Not(HasSubstr("http://")), Not(HasSubstr("https://")),
                          Not(HasSubstr("innerHTML")), Not(HasSubstr("outerHTML")),
                          Not(HasSubstr("insertAdjacentHTML")), Not(HasSubstr("document.write")),
                          Not(HasSubstr("eval("))));
}

TEST_F(WebServerTest, WithoutTokenOrCookieThereIsNothing) {
  Start();
  const WebVisitor visitor(server_->address());
  std::string wrong = visitor.entrance;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const std::string folder = visitor.folder;
  const std::string secret = Between(visitor.cookie, "ferry-web=", "\r");
  for (const std::string& target : std::vector<std::string>{
           "/", "/?", "/?token=", wrong, visitor.entrance + "0", "/?x&" + wrong.substr(2),
           visitor.entrance.substr(0, visitor.entrance.size() - 1), folder, folder + "events",
           folder + "x", "/x", "//", "/../", folder + "../"}) {
    const std::string answer = Talk(port(), Request(target));
    EXPECT_EQ(StatusOf(answer), 403) << target;
    EXPECT_THAT(answer, AllOf(Not(HasSubstr("Set-Cookie")), Not(HasSubstr(folder)))) << target;
  }
  for (const std::string& cookie : std::vector<std::string>{
           "ferry-web=", "ferry-web=" + secret + "0", "ferry-web=" + secret.substr(1),
           "ferry-webx=" + secret, "xferry-web=" + secret, "ferry-web", secret, ";;;;",
           "=" + secret, "ferry-web=" + Between(visitor.entrance, "token=", "\n")}) {
    EXPECT_EQ(StatusOf(Talk(port(), Request(folder, "Cookie: " + cookie + "\r\n"))), 403) << cookie;
  }
  EXPECT_EQ(StatusOf(Talk(port(), Request(folder, "Cookie: a=b; ferry-web=x; ferry-web=" + secret +
                                                      "; c=d\r\n"))),
            200);
  EXPECT_EQ(StatusOf(visitor.Get("x")), 404);
  EXPECT_EQ(server_->readers(), 0U);
  EXPECT_EQ(looks_, 0U);
}

TEST_F(WebServerTest, TwoServersHaveNothingInCommon) {
  Start();
  const WebVisitor first(server_->address());
  auto second = WebServer::Start({}, Inquire());
  ASSERT_TRUE(second.ok());
  const WebVisitor other((*second)->address());
  EXPECT_NE(first.entrance, other.entrance);
  EXPECT_NE(first.folder, other.folder);
  EXPECT_EQ(StatusOf(Talk(other.port, Request(first.entrance))), 403);
  EXPECT_EQ(StatusOf(Talk(other.port, Request(other.folder, first.cookie))), 403);
}

// A foreign name that means 127.0.0.1: the browser takes its pages for this server's.
TEST_F(WebServerTest, AForeignHostIsRefused) {
  Start();
  const WebVisitor visitor(server_->address());
  const auto with_host = [&](const std::string& lines) {
    return StatusOf(
        Talk(port(), "GET " + visitor.folder + " HTTP/1.1\r\n" + lines + visitor.cookie + "\r\n"));
  };
  for (const char* host :
       {"127.0.0.1", "localhost", "[::1]", "localhost:8080", "127.0.0.1:1", "[::1]:65535"}) {
    EXPECT_EQ(with_host(std::string("Host: ") + host + "\r\n"), 200) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
        "evil@127.0.0.1", "127.0.0.1:", "[::1", "127.0.0.1:80:80", "127.0.0.1:x", "127.0.0.2",
        "0.0.0.0", "LOCALHOST.", "127.0.0.1:800000"}) {
    EXPECT_EQ(with_host(std::string("Host: ") + host + "\r\n"), 421) << host;
  }
  EXPECT_EQ(with_host(""), 400);
  EXPECT_EQ(with_host("Host: localhost\r\nHost: evil.example\r\n"), 400);
  EXPECT_EQ(with_host("Host: localhost\r\nhost: localhost\r\n"), 400);
  EXPECT_EQ(StatusOf(Talk(port(), "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")),
            400);
}

TEST_F(WebServerTest, ForeignPagesReadNothing) {
  Start();
  const WebVisitor visitor(server_->address());
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1"}) {
    EXPECT_EQ(StatusOf(visitor.Get("", std::string("Origin: ") + origin + "\r\n")), 421) << origin;
  }
  EXPECT_EQ(StatusOf(visitor.Get("", "Origin: http://127.0.0.1\r\n")), 200);
  for (const char* site : {"cross-site", "same-site", "none"}) {
    EXPECT_EQ(StatusOf(visitor.Get("events", std::string("Sec-Fetch-Site: ") + site + "\r\n")),
              403);
  }
}

TEST_F(WebServerTest, OnlyGetIsAnswered) {
  Start();
  const WebVisitor visitor(server_->address());
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"}) {
    const std::string answer = Talk(port(), Request(visitor.folder, visitor.cookie, method));
    EXPECT_EQ(StatusOf(answer), 405) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET\r\n"));
  }
}

// ---- Events ----

TEST_F(WebServerTest, AReaderIsToldOfEachLook) {
  Start();
  WebEvents events(WebVisitor(server_->address()));
  EXPECT_THAT(events.head(), AllOf(HasSubstr("200 OK"), HasSubstr("text/event-stream")));
  EXPECT_EQ(events.Next(), "snapshot");
  for (int i = 0; i < 20; ++i) {
    const std::string kind = events.Next();
    EXPECT_EQ(kind, "change");
    EXPECT_EQ(events.state["trouble"],
              "look " + std::to_string(events.time) + std::string(filler_, 'x'));
  }
}

TEST_F(WebServerTest, WithoutAReaderNobodyLooks) {
  Start();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(Serves());
  }
  EXPECT_EQ(looks_, 0U);
  {
    WebEvents events(WebVisitor(server_->address()));
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(events.Next(), "");
    }
  }
  EXPECT_TRUE(Eventually([&] { return server_->readers() == 0; }));
  const uint64_t looks = looks_;
  const auto until = std::chrono::steady_clock::now() + 100 * options_.pace.shortest;
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_TRUE(Serves());
  }
  EXPECT_LE(looks_, looks + 1) << "one may have been under way";
}

TEST_F(WebServerTest, AWindowTooManyIsToldSo) {
  Start();
  const WebVisitor visitor(server_->address());
  std::vector<std::unique_ptr<WebEvents>> windows;
  for (size_t i = 0; i < WebServer::kMostReaders; ++i) {
    windows.push_back(std::make_unique<WebEvents>(visitor));
    EXPECT_EQ(windows.back()->Next(), "snapshot");
  }
  EXPECT_EQ(StatusOf(visitor.Get("events")), 503);
  EXPECT_EQ(server_->readers(), WebServer::kMostReaders);
  windows.pop_back();
  EXPECT_TRUE(Eventually([&] { return server_->readers() == WebServer::kMostReaders - 1; }));
  EXPECT_EQ(WebEvents(visitor).Next(), "snapshot");
}

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(WebServerTest, AReaderThatReadsNothingCostsNothingAndIsHungUpOn) {
  filler_ = 100'000;
  options_.reader_patience = 2s;
  Start();
  const WebVisitor visitor(server_->address());
  std::vector<std::unique_ptr<WebConnection>> idle;
  for (size_t i = 0; i + 1 < WebServer::kMostReaders; ++i) {
    idle.push_back(std::make_unique<WebConnection>(port()));
    const int small = 4096;
    setsockopt(idle.back()->fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    idle.back()->Send(Request(visitor.folder + "events", visitor.cookie));
  }
  WebEvents busy(visitor);
  for (int i = 0; i < 60; ++i) {
    ASSERT_NE(busy.Next(), "");
  }
  const uint64_t before = ResidentBytes();
  for (int i = 0; i < 300; ++i) {  // 30 MB for each
    ASSERT_NE(busy.Next(), "") << "it is held up by others";
    EXPECT_EQ(busy.state["trouble"].get<std::string>().substr(0, 5), "look ");
  }
  EXPECT_LT(ResidentBytes(), before + (40 << 20)) << "of 240 MB that were not read";
  EXPECT_TRUE(Eventually([&] { return busy.Next() != "" && server_->readers() == 1; }))
      << server_->readers();
}

// ---- Questions about a rank ----

TEST_F(WebServerTest, AQuestionAboutARankIsAnswered) {
  Start();
  visitor_.emplace(server_->address());
  const std::string answer = WhyOf("?rank=3&job=halo");
  EXPECT_EQ(StatusOf(answer), 200);
  EXPECT_THAT(answer, AllOf(HasSubstr("text/plain"), HasSubstr("default-src 'none'"),
                            testing::EndsWith("\r\n\r\nrank 3 of job halo waits\n")));
  EXPECT_THAT(WhyOf("?rank=4294967295&job=a%20%23%2f%C3%A9&x=%25"),
              HasSubstr("rank 4294967295 of job a #/\xc3\xa9&x=% waits"));
  EXPECT_EQ(looks_, 0U);
  WebEvents events(*visitor_);
  for (int i = 0; i < 5; ++i) {  // it is answered between looks, too
    EXPECT_NE(events.Next(), "");
    EXPECT_EQ(StatusOf(WhyOf("?rank=0&job=j")), 200);
  }
}

TEST_F(WebServerTest, ABrokenQuestionIsNone) {
  Start();
  visitor_.emplace(server_->address());
  for (const char* query :
       {"", "?", "?rank=&job=j", "?rank=1", "?rank=1&job=", "?job=j&rank=1", "?rank=-1&job=j",
        "?rank=1x&job=j", "?rank=4294967296&job=j", "?rank= 1&job=j", "?rank=1&job=%",
        "?rank=1&job=%2", "?rank=1&job=%zz", "?rank=1&job=%+1", "?rank=1&&job=j"}) {
    EXPECT_EQ(StatusOf(WhyOf(query)), 400) << query;
  }
  const std::string good = visitor_->folder + "why?rank=1&job=j";
  EXPECT_EQ(StatusOf(Talk(port(), Request(good))), 403);
  EXPECT_EQ(StatusOf(Talk(port(), Request(good, visitor_->cookie + "Sec-Fetch-Site: none\r\n"))),
            403);
  EXPECT_EQ(asked_, 0);
}

// Daemons that do not answer hold up nothing but the answers.
TEST_F(WebServerTest, SlowAnswersHoldUpNoPage) {
  Start();
  visitor_.emplace(server_->address());
  is_slow_ = true;
  std::vector<std::unique_ptr<WebConnection>> asking;
  for (size_t i = 0; i < Feed::kMostQuestions + 1; ++i) {
    asking.push_back(std::make_unique<WebConnection>(port()));
    asking.back()->Send(Request(visitor_->folder + "why?rank=1&job=j", visitor_->cookie));
    EXPECT_TRUE(Eventually([&] { return asked_ == 1; })) << "the others wait";
    EXPECT_TRUE(Serves());
  }
  EXPECT_EQ(StatusOf(WhyOf("?rank=1&job=j")), 503);
  asking.erase(asking.begin());  // one that does not wait for its answer
  is_slow_ = false;
  is_slow_.notify_all();
  for (const auto& each : asking) {
    EXPECT_EQ(StatusOf(each->ReadAll()), 200);
  }
}

TEST_F(WebServerTest, EndsWithQuestionsThatWait) {
  Start();
  visitor_.emplace(server_->address());
  is_slow_ = true;
  WebConnection first(port());
  WebConnection second(port());
  for (const WebConnection* each : {&first, &second}) {
    each->Send(Request(visitor_->folder + "why?rank=1&job=j", visitor_->cookie));
  }
  EXPECT_TRUE(Serves());
  std::thread end([&] { server_.reset(); });
  is_slow_ = false;
  is_slow_.notify_all();
  end.join();
  first.ReadAll();
  second.ReadAll();
  EXPECT_TRUE(first.has_ended());
  EXPECT_TRUE(second.has_ended());
}

// ---- Limits and hostile requests ----

TEST_F(WebServerTest, ARequestHasAnEnd) {
  Start();
  const WebVisitor visitor(server_->address());
  EXPECT_EQ(StatusOf(visitor.Get("", "X: " + std::string(7000, 'x') + "\r\n")), 200);
  EXPECT_THAT(StatusOf(visitor.Get("", "X: " + std::string(9000, 'x') + "\r\n")),
              testing::AnyOf(431, 0));
  std::string many;
  for (int i = 0; i < 4000; ++i) {
    many += "X" + std::to_string(i) + ": x\r\n";
  }
  EXPECT_THAT(StatusOf(visitor.Get("", many)), testing::AnyOf(431, 0));
  EXPECT_THAT(StatusOf(Talk(port(), "GET /" + std::string(1 << 20, 'a'))), testing::AnyOf(431, 0));
  EXPECT_THAT(StatusOf(Talk(port(), std::string(1 << 20, '\n'))), testing::AnyOf(400, 431, 0));
  EXPECT_THAT(StatusOf(visitor.Get("", "Content-Length: 5\r\n")), testing::AnyOf(400, 0));
  EXPECT_THAT(StatusOf(visitor.Get("", "Transfer-Encoding: chunked\r\n")), testing::AnyOf(400, 0));
  EXPECT_TRUE(Serves());
}

TEST_F(WebServerTest, ARequestMayComeInPieces) {
  Start();
  const WebVisitor visitor(server_->address());
  WebConnection slow(port());
  for (const char byte : Request(visitor.folder, visitor.cookie)) {
    slow.Send(std::string(1, byte));
  }
  EXPECT_EQ(StatusOf(slow.ReadAll()), 200);
}

TEST_F(WebServerTest, WhoSaysNothingIsHungUpOn) {
  options_.request_patience = 50ms;
  Start();
  WebConnection silent(port());
  WebConnection slow(port());
  slow.Send("GET / HT");
  silent.ReadAll();
  slow.ReadAll();
  EXPECT_TRUE(silent.has_ended());
  EXPECT_TRUE(slow.has_ended());
}

TEST_F(WebServerTest, ManyWhoSayNothingKeepNobodyOut) {
  Start();
  std::vector<std::unique_ptr<WebConnection>> silent;
  for (size_t i = 0; i < 4 * WebServer::kMostWaiting; ++i) {
    silent.push_back(std::make_unique<WebConnection>(port()));
    EXPECT_TRUE(i % 16 != 0 || Serves()) << i;
  }
  EXPECT_TRUE(Serves());
  silent.front()->ReadAll();
  EXPECT_TRUE(silent.front()->has_ended()) << "the oldest gives way";
}

TEST_F(WebServerTest, BrokenRequestsHarmNobody) {
  Start();
  const WebVisitor visitor(server_->address());
  const std::string good = Request(visitor.folder + "events", visitor.cookie);
  std::vector<std::string> hostile = {
      "",
      "\r\n\r\n",
      "GET",
      "GET /\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "\x16\x03\x01\x02\x01\x01",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET  /  HTTP/1.1\r\n\r\n",
      std::string("GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", 38),
      "GET / HTTP/1.1\r\n: x\r\n\r\n",
      "GET / HTTP/1.1\nHost: localhost\n\n",
      "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "GET /%00%ff%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
      Request("/") + Request(visitor.folder, visitor.cookie)};
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {  // a good one with some bytes changed, lost or added
    std::string text = good;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, std::string(1 + random() % 50, static_cast<char>(random())));
      }
      text = text.empty() ? "x" : text;
    }
    hostile.push_back(text);
  }
  const std::set<int> statuses = {0, 200, 400, 403, 404, 405, 421, 431};
  for (const std::string& text : hostile) {
    WebConnection connection(port());
    connection.Send(text);
    connection.EndSending();
    connection.ReadAll();
    EXPECT_TRUE(statuses.contains(StatusOf(connection.text()))) << text << "\n"
                                                                << connection.text().substr(0, 200);
  }
  EXPECT_TRUE(Serves());
  EXPECT_TRUE(Eventually([&] { return server_->readers() == 0; }));
}

TEST_F(WebServerTest, APortThatIsTakenIsNamed) {
  Start();
  WebOptions same;
  same.port = port();
  const auto second = WebServer::Start(same, Inquire());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), ErrorCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(port())));
}

// It ends at once, whoever reads and whatever is looked at.
TEST_F(WebServerTest, EndsWhileOthersRead) {
  Start();
  const WebVisitor visitor(server_->address());
  WebEvents first(visitor);
  WebEvents second(visitor);
  EXPECT_EQ(first.Next(), "snapshot");
  server_.reset();
  while (!first.Next().empty()) {
  }
  EXPECT_EQ(StatusOf(Talk(visitor.port, Request("/"))), 0);
}

}  // namespace
}  // namespace ferry::tools

#include "daemon/metrics/metrics_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>
#include <string_view>
#include <thread>
#include <utility>

#include "common/net_address.h"
#include "common/thread.h"
#include "common/unique_fd.h"
#include "daemon/metrics/metrics_access.h"
#include "daemon/metrics/user_names.h"
#include "daemon/sockets/connection_acceptor.h"

namespace ferry::daemon {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr std::chrono::seconds kPatience(5);  // for a request, for its numbers, for its reader
constexpr uint32_t kMostRequestBytes = 8 << 10;
// Connections whose request has not come yet, and as many whose answer has not left, from one
// address and in all.
constexpr size_t kMostOfAddress = 16;
constexpr size_t kMost = 64;
constexpr std::chrono::milliseconds kRetry(100);  // while the system has no room for a connection

constexpr char kMetricsPath[] = "/metrics";
constexpr char kHealthPath[] = "/health";     // whether it takes jobs
constexpr char kLivePath[] = "/health/live";  // whether it works

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kJson[] = "application/json";

// Makes the pages, one after the other, on a thread that may block for their numbers: the one that
// serves connections never does, so that it can say that ferryd is sick.
class PageMaker {
 public:
  PageMaker(MetricsAccess access, std::function<MetricsSample()> sample)
      : access_(std::move(access)),
        sample_(std::move(sample)),
        work_(boost::asio::make_work_guard(context_)),
        thread_(MakeThread("ferry-pages", [this] { context_.run(); })) {}
  // Blocks while a sample is taken.
  ~PageMaker() {
    context_.stop();
    thread_.join();
  }

  // Calls `done` with the page for the one at the other end of `socket`, on this thread.
  void Make(int socket, const std::string& from, std::function<void(std::string)> done) {
    boost::asio::post(context_, [this, socket, from, done = std::move(done)] {
      const MetricsReader reader = access_.ReaderOf(socket, from, &users_);
      done(MetricsText(sample_(), reader, &users_));
    });
  }

 private:
  const MetricsAccess access_;
  const std::function<MetricsSample()> sample_;
  UserNames users_;  // on its thread
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

class Server final : public MetricsServer {
 public:
  Server(UniqueFd listener, const std::string& host, const MetricsOptions& options,
         MetricsAccess access, MetricsSources sources)
      : node_name_(options.node_name),
        address_(HostPort{host, static_cast<uint16_t>(PortOf(listener.get()))}.Text()),
        health_(context_, std::move(sources.health)),
        listener_(context_, listener.Release()),
        retry_(context_),
        pages_(std::make_unique<PageMaker>(std::move(access), std::move(sources.sample))) {
    AcceptSoon();
    thread_ = MakeThread("ferry-metrics", [this] { context_.run(); });
  }
  ~Server() override {
    context_.stop();
    thread_.join();
    pages_.reset();
  }
  const std::string& address() const override { return address_; }

 private:
  class Connection;

  void AcceptSoon() {
    listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (!error) {
                             Accept();
                           }
                         });
  }
  void Accept();
  static void MakeRoomFor(const std::string& from, std::list<Connection*>& connections);
  void MakeNextPage();

  const std::string node_name_;
  const std::string address_;
  boost::asio::io_context context_{1};
  HealthCheck health_;
  // Oldest first.
  std::list<Connection*> waiting_;    // for a request
  std::list<Connection*> answering_;  // until the answer has left
  // The connections of answering_ whose page is still to be made, in the order of their requests.
  std::list<std::shared_ptr<Connection>> in_line_;
  bool makes_page_ = false;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer retry_;
  std::unique_ptr<PageMaker> pages_;
  std::thread thread_;
};

// One request, and its answer.
class Server::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, UniqueFd socket, const tcp& protocol, std::string from)
      : from(std::move(from)),
        server_(server),
        stream_(tcp::socket(server.context_, protocol, socket.Release())),
        late_(server.context_) {
    parser_.header_limit(kMostRequestBytes);
  }
  void Start() {
    server_.waiting_.push_back(this);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                       self->server_.waiting_.remove(self.get());
                       if (!error) {
                         self->Answer();
                       }
                     });
  }
  void HangUp() {
    server_.waiting_.remove(this);
    server_.answering_.remove(this);
    has_answer_ = true;
    late_.cancel();
    stream_.close();
    server_.in_line_.remove(shared_from_this());  // perhaps the last to hold it
  }
  // Its page, unless it has had another answer meanwhile.
  void Send(http::status status, const char* type, std::string body) {
    if (std::exchange(has_answer_, true)) {
      return;
    }
    late_.cancel();
    answer_.version(parser_.get().version());
    answer_.result(status);
    answer_.set(http::field::content_type, type);
    answer_.set(http::field::cache_control, "no-store");
    answer_.body() = std::move(body);
    answer_.keep_alive(false);
    answer_.prepare_payload();
    stream_.expires_after(kPatience);
    KeepUnsent(false);
    http::async_write(stream_, answer_,
                      [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                        self->server_.answering_.remove(self.get());
                        if (!error) {
                          boost::system::error_code ignored;
                          self->KeepUnsent(true);
                          self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                        }
                      });
  }
  bool has_answer() const { return has_answer_; }
  int socket() { return stream_.socket().native_handle(); }

  const std::string from;

 private:
  void Answer() {
    MakeRoomFor(from, server_.answering_);
    server_.answering_.push_back(this);
    const std::string_view target(parser_.get().target().data(), parser_.get().target().size());
    const bool is_health = target == kHealthPath || target == kLivePath;
    if (parser_.get().method() != http::verb::get) {
      Send(http::status::method_not_allowed, kPlain, "only GET is answered\n");
    } else if (is_health) {
      AskHealth(target == kLivePath);
    } else if (target == kMetricsPath) {
      AskPage();
    } else {
      Send(http::status::not_found, kPlain,
           "ferryd's metrics are at /metrics, its state at /health and /health/live\n");
    }
  }
  void AskHealth(bool only_lives) {
    server_.health_.Ask([self = shared_from_this(), only_lives](const Health& health) {
      const bool well = health.state == HealthState::kReady ||
                        (only_lives && health.state == HealthState::kDraining);
      self->Send(well ? http::status::ok : http::status::service_unavailable, kJson,
                 health.Json(self->server_.node_name_));
    });
  }
  void AskPage() {
    late_.expires_after(kPatience);
    late_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) {
        self->server_.in_line_.remove(self);
        self->Send(http::status::service_unavailable, kPlain,
                   "ferryd has not told its numbers in time\n");
      }
    });
    server_.in_line_.push_back(shared_from_this());
    server_.MakeNextPage();
  }
  // Makes the kernel keep, or drop, the bytes that the reader has not taken when the socket is
  // closed.
  void KeepUnsent(bool keeps) {
    boost::system::error_code ignored;
    stream_.socket().set_option(tcp::socket::linger(!keeps, 0), ignored);
  }

  Server& server_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer late_;
  boost::beast::flat_buffer buffer_{kMostRequestBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> answer_;
  bool has_answer_ = false;  // or needs none
};

// One at a time, so that those who have hung up meanwhile cost nothing.
void Server::MakeNextPage() {
  if (makes_page_ || in_line_.empty()) {
    return;
  }
  makes_page_ = true;
  const std::shared_ptr<Connection> next = in_line_.front();
  in_line_.pop_front();
  // A descriptor of its own: the connection may be hung up on meanwhile, and the number be
  // another's.
  auto socket = std::make_shared<UniqueFd>(fcntl(next->socket(), F_DUPFD_CLOEXEC, 0));
  pages_->Make(socket->get(), next->from, [this, socket, next](std::string page) mutable {
    boost::asio::post(context_, [this, next = std::move(next), page = std::move(page)]() mutable {
      makes_page_ = false;
      next->Send(http::status::ok, kMetricsType, std::move(page));
      MakeNextPage();
    });
  });
}

void Server::Accept() {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  UniqueFd fd(accept4(listener_.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                      SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    char text[NI_MAXHOST] = "";
    getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof(text), nullptr, 0,
                NI_NUMERICHOST);
    MakeRoomFor(text, waiting_);
    const tcp protocol = address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
    std::make_shared<Connection>(*this, std::move(fd), protocol, text)->Start();
  } else if (LacksRoom(errno)) {
    retry_.expires_after(kRetry);
    return retry_.async_wait([this](const boost::system::error_code&) { AcceptSoon(); });
  }
  AcceptSoon();
}

// Hangs up on the connection that has been silent for longest, so that new ones always find room.
void Server::MakeRoomFor(const std::string& from, std::list<Connection*>& connections) {
  const auto is_from = [&](const Connection* connection) { return connection->from == from; };
  if (std::count_if(connections.begin(), connections.end(), is_from) >=
      static_cast<ptrdiff_t>(kMostOfAddress)) {
    (*std::find_if(connections.begin(), connections.end(), is_from))->HangUp();
  } else if (connections.size() >= kMost) {
    connections.front()->HangUp();
  }
}

Status Refuse(const std::string& why) { return {ErrorCode::kConfiguration, why}; }

}  // namespace

// ---- MetricsServer ----

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const MetricsOptions& options,
                                                              MetricsSources sources) {
  StatusOr<HostPort> address = ParseHostPort(options.address, PortZero::kAllow);
  if (!address.ok()) {
    return Refuse("metrics_address: " + address.status().message());
  }
  if (address->host == "localhost") {
    address->host = "127.0.0.1";
  }
  if (options.loopback_only && !CheckLoopback(address->host).ok()) {
    return Refuse("metrics_address " + options.address +
                  " can be read from other machines, without a password: use a loopback address "
                  "(127.0.0.1), or allow it with metrics_access = \"anyone\"");
  }
  StatusOr<MetricsAccess> access = MetricsAccess::Parse(options.readers);
  FERRY_RETURN_IF_ERROR(access.status());
  StatusOr<UniqueFd> listener = ListenTcp(*address, "metrics_address");
  FERRY_RETURN_IF_ERROR(listener.status());
  return std::unique_ptr<MetricsServer>(std::make_unique<Server>(
      std::move(*listener), address->host, options, std::move(*access), std::move(sources)));
}

}  // namespace ferry::daemon

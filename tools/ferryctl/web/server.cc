#include "tools/ferryctl/web/server.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <thread>
#include <utility>

#include "common/net_address.h"
#include "common/thread.h"
#include "common/unique_fd.h"
#include "tools/ferryctl/web/door.h"
#include "tools/ferryctl/web/event_log.h"

namespace ferry::tools {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using Error = boost::system::error_code;

constexpr char kHost[] = "127.0.0.1";
constexpr std::chrono::milliseconds kRetry(100);  // while there are no means for a connection
constexpr int kReaderKernelBytes = 64 << 10;
constexpr std::string_view kNonceMark = "@NONCE@";

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string Filled(std::string_view page, const std::string& nonce) {
  std::string filled;
  size_t mark = 0;
  while ((mark = page.find(kNonceMark)) != page.npos) {
    filled.append(page.substr(0, mark)).append(nonce);
    page.remove_prefix(mark + kNonceMark.size());
  }
  return filled.append(page);
}

// Forbids the browser what it must not do with an answer: keep it, guess its type, show it inside
// another page, tell its address to others, or load or send anything anywhere. `nonce` empty: run
// no script.
template <typename Response>
void AddRules(const std::string& nonce, Response* response) {
  std::string policy =
      "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'";
  if (!nonce.empty()) {
    policy +=
        "; connect-src 'self'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce + "'";
  }
  response->set("Content-Security-Policy", policy);
  response->set("Cache-Control", "no-store");
  response->set("X-Content-Type-Options", "nosniff");
  response->set("X-Frame-Options", "DENY");
  response->set("Referrer-Policy", "no-referrer");
  response->set("Cross-Origin-Resource-Policy", "same-origin");
  response->set("Cross-Origin-Opener-Policy", "same-origin");
}

struct Answer {
  http::status status = http::status::ok;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string nonce;
  std::string cookie;
};

Answer Refusal(http::status status, std::string sentence) {
  return {status, "text/plain; charset=utf-8", std::move(sentence) + "\n", "", ""};
}

class Server final : public WebServer {
 public:
  Server(const WebOptions& options, UniqueFd listener, Door door, Inquiry inquiry)
      : options_(options),
        door_(std::move(door)),
        port_(daemon::PortOf(listener.get())),
        address_("http://" + std::string(kHost) + ":" + std::to_string(port_) + door_.Address()),
        listener_(context_, listener.Release()),
        retry_(context_),
        feed_(
            std::move(inquiry), &log_,
            [this] { boost::asio::post(context_, [this] { PumpAll(); }); }, options.pace) {
    AcceptSoon();
    thread_ = MakeThread("ferry-web", [this] { context_.run(); });
  }
  ~Server() override {
    feed_.Stop();  // it posts to the context, whose handlers tell it of readers
    context_.stop();
    thread_.join();
  }
  const std::string& address() const override { return address_; }
  uint16_t port() const override { return port_; }
  size_t readers() const override { return reader_count_; }

 private:
  class Connection;

  void AcceptSoon() {
    listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const Error& error) {
                           if (!error) {
                             Accept();
                           }
                         });
  }
  void Accept();
  void PumpAll();
  void TellReaders() {
    reader_count_ = readers_.size();
    feed_.SetReaders(readers_.size());
  }
  Answer AnswerIn(Room room);

  const WebOptions options_;
  EventLog log_;
  Door door_;
  const uint16_t port_;
  const std::string address_;
  // Connections tell these lists of their end, and may live as long as the context.
  std::list<Connection*> waiting_;  // whose answer has not left; the oldest first
  std::list<Connection*> readers_;
  std::atomic<size_t> reader_count_ = 0;
  boost::asio::io_context context_{1};
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer retry_;
  Feed feed_;
  std::thread thread_;
};

// One request, and its answer or the events. Lives as long as one of its operations is under way.
class Server::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, UniqueFd socket)
      : server_(server), stream_(tcp::socket(server.context_, tcp::v4(), socket.Release())) {
    parser_.header_limit(kMostRequestBytes);
    parser_.body_limit(uint64_t{0});
  }

  void Start() {
    server_.waiting_.push_back(this);
    stream_.expires_after(server_.options_.request_patience);
    http::async_read(
        stream_, buffer_, parser_,
        [self = shared_from_this()](const Error& error, size_t) { self->OnRequest(error); });
  }
  void HangUp() {
    server_.waiting_.remove(this);
    Leave();
    stream_.close();
  }
  // Sends the next event, unless one is under way.
  void Pump() {
    if (writes_) {
      return;
    }
    const std::optional<EventLog::Event> event = server_.log_.After(number_);
    if (!event.has_value()) {
      return;
    }
    number_ = event->number;
    Send(event->text);
  }

 private:
  void OnRequest(const Error& error) {
    if (error) {
      if (error == http::error::end_of_stream || error == boost::beast::error::timeout ||
          error.category() == boost::system::system_category()) {
        return HangUp();  // it has said nothing, or is gone
      }
      const bool is_long =
          error == http::error::header_limit || error == http::error::buffer_overflow;
      const http::status status =
          is_long ? http::status::request_header_fields_too_large : http::status::bad_request;
      return Say(Refusal(status, "this server takes a GET of at most 8 KiB, without a body"));
    }
    const auto& request = parser_.get();
    const Room room = server_.door_.RoomFor(
        {View(request.method_string()), View(request.target()), View(request[http::field::host]),
         request.count(http::field::host), View(request[http::field::cookie]),
         View(request[http::field::origin]), View(request["Sec-Fetch-Site"])});
    if (room == Room::kEvents && server_.readers_.size() < kMostReaders) {
      return Listen();
    }
    if (room == Room::kWhy) {
      return AskWhy(View(request.target()));
    }
    Say(server_.AnswerIn(room));
  }

  // The answer takes as long as daemons do.
  void AskWhy(std::string_view target) {
    std::optional<RankQuestion> question = QuestionOf(target);
    if (!question.has_value()) {
      return Say(server_.AnswerIn(Room::kBadRequest));
    }
    const auto say = [self = shared_from_this()](std::string text) mutable {
      Server& server = self->server_;
      boost::asio::post(server.context_, [self = std::move(self), text = std::move(text)] {
        self->Say({http::status::ok, "text/plain; charset=utf-8", text, "", ""});
      });
    };
    if (!server_.feed_.Ask(std::move(*question), say)) {
      Say(server_.AnswerIn(Room::kWhy));
    }
  }

  void Say(Answer answer) {
    answer_.version(11);
    answer_.result(answer.status);
    answer_.set(http::field::content_type, answer.type);
    AddRules(answer.nonce, &answer_);
    if (!answer.cookie.empty()) {
      answer_.set(http::field::set_cookie, answer.cookie);
    }
    if (answer.status == http::status::method_not_allowed) {
      answer_.set(http::field::allow, "GET");
    }
    answer_.body() = std::move(answer.body);
    answer_.keep_alive(false);
    answer_.prepare_payload();
    stream_.expires_after(server_.options_.request_patience);
    http::async_write(stream_, answer_, [self = shared_from_this()](const Error& error, size_t) {
      self->server_.waiting_.remove(self.get());
      if (!error) {
        Error ignored;
        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      }
    });
  }

  // ---- Events ----

  void Listen() {
    server_.waiting_.remove(this);
    server_.readers_.push_back(this);
    Error ignored;
    stream_.socket().set_option(boost::asio::socket_base::send_buffer_size(kReaderKernelBytes),
                                ignored);
    http::response<http::empty_body> head(http::status::ok, 11);
    head.set(http::field::content_type, "text/event-stream");
    AddRules("", &head);
    head.keep_alive(false);
    std::string text = "HTTP/1.1 200 OK\r\n";
    for (const auto& field : head) {
      text.append(View(field.name_string())).append(": ").append(View(field.value()));
      text.append("\r\n");
    }
    stream_.expires_never();
    WatchForEnd();
    Send(std::make_shared<const std::string>(text + "\r\n"));
    server_.TellReaders();
  }
  // A reader has nothing more to say.
  void WatchForEnd() {
    stream_.async_read_some(boost::asio::buffer(last_words_),
                            [self = shared_from_this()](const Error&, size_t) { self->HangUp(); });
  }
  void Send(std::shared_ptr<const std::string> text) {
    writes_ = true;
    stream_.expires_after(server_.options_.reader_patience);
    const auto buffer = boost::asio::buffer(*text);
    boost::asio::async_write(
        stream_, buffer,
        [self = shared_from_this(), text = std::move(text)](const Error& error, size_t) {
          self->writes_ = false;
          error ? self->HangUp() : self->Pump();
        });
  }
  void Leave() {
    const size_t before = server_.readers_.size();
    server_.readers_.remove(this);
    if (server_.readers_.size() != before) {
      server_.TellReaders();
    }
  }

  Server& server_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{kMostRequestBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> answer_;
  std::array<char, 16> last_words_{};
  uint64_t number_ = 0;  // of the event that it has had
  bool writes_ = false;
};

void Server::Accept() {
  UniqueFd fd(accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    if (waiting_.size() >= kMostWaiting) {
      waiting_.front()->HangUp();
    }
    std::make_shared<Connection>(*this, std::move(fd))->Start();
  } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    retry_.expires_after(kRetry);
    return retry_.async_wait([this](const Error&) { AcceptSoon(); });
  }
  AcceptSoon();
}

void Server::PumpAll() {
  const std::list<Connection*> readers = readers_;
  for (Connection* reader : readers) {
    reader->Pump();
  }
}

Answer Server::AnswerIn(Room room) {
  switch (room) {
    case Room::kBadRequest:
      return Refusal(http::status::bad_request, "this is not a request of a browser");
    case Room::kForeignHost:
      return Refusal(http::status::misdirected_request,
                     "this server answers only to 127.0.0.1, localhost and [::1]");
    case Room::kReadOnly:
      return Refusal(http::status::method_not_allowed, "this server only answers GET");
    case Room::kForbidden:
      return Refusal(http::status::forbidden,
                     "open the whole address that `ferryctl web` has printed; it is for the user "
                     "who started that, and has a token at its end");
    case Room::kNotFound:
      return Refusal(http::status::not_found, "there is no such page");
    case Room::kEvents:
      return Refusal(http::status::service_unavailable,
                     "eight windows show this page already: close one");
    case Room::kWhy:
      return Refusal(http::status::service_unavailable, "too many questions wait: ask again");
    case Room::kEntrance: {
      // Not a redirection: of that the browser would say that a foreign page had led it here, and
      // keep the cookie back.
      const std::string& folder = door_.folder();
      return {http::status::ok, "text/html; charset=utf-8",
              "<!doctype html><link rel=icon href=\"data:,\"><meta http-equiv=refresh "
              "content=\"0;url=" +
                  folder + "\"><a href=\"" + folder + "\">Ferry</a>\n",
              "", door_.Cookie()};
    }
    case Room::kPage: {
      const std::string nonce = door_.NewNonce();
      return {http::status::ok, "text/html; charset=utf-8", Filled(kWebPage, nonce), nonce, ""};
    }
  }
  return {};
}

}  // namespace

StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const WebOptions& options, Inquiry inquiry) {
  StatusOr<Door> door = Door::Make();
  FERRY_RETURN_IF_ERROR(door.status());
  StatusOr<UniqueFd> listener = daemon::ListenTcp({kHost, options.port}, "--port");
  FERRY_RETURN_IF_ERROR(listener.status());
  return std::unique_ptr<WebServer>(std::make_unique<Server>(options, std::move(*listener),
                                                             std::move(*door), std::move(inquiry)));
}

}  // namespace ferry::tools

// A client of `ferryctl web`, at the level of sockets: tests also say what no browser would.
//
// One test thread. Every read ends after tests::kPatience.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/unique_fd.h"
#include "tests/support/patience.h"

namespace ferry::tests {

// A connection to a port of 127.0.0.1.
class WebConnection {
 public:
  explicit WebConnection(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      socket_ = UniqueFd();
    }
  }
  int fd() const { return socket_.get(); }

  // Sends what the server takes.
  void Send(const std::string& bytes) const {
    for (size_t at = 0; socket_.valid() && at < bytes.size();) {
      const ssize_t sent = send(socket_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) {
        return;
      }
      at += static_cast<size_t>(sent);
    }
  }
  void EndSending() const { shutdown(socket_.get(), SHUT_WR); }
  // Reads on; false: the server has hung up, or said nothing within the patience.
  bool ReadSome() {
    if (!socket_.valid()) {
      return false;
    }
    pollfd waiting{socket_.get(), POLLIN, 0};
    char bytes[65536];
    if (poll(&waiting, 1, kPatienceMs) <= 0) {
      return false;
    }
    const ssize_t size = read(socket_.get(), bytes, sizeof(bytes));
    if (size <= 0) {
      has_ended_ = true;
      return false;
    }
    text_.append(bytes, static_cast<size_t>(size));
    return true;
  }
  // All that the server says until it hangs up.
  const std::string& ReadAll() {
    while (ReadSome()) {
    }
    return text_;
  }
  bool has_ended() const { return has_ended_; }
  std::string& text() { return text_; }

 private:
  UniqueFd socket_;
  std::string text_;
  bool has_ended_ = false;
};

// Returns all that the server says to `request`.
inline std::string Talk(uint16_t port, const std::string& request) {
  WebConnection connection(port);
  connection.Send(request);
  return connection.ReadAll();
}

inline std::string Request(const std::string& target, const std::string& headers = "",
                           const std::string& method = "GET") {
  return method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n";
}

inline int StatusOf(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi("0" + answer.substr(9, 3)) : 0;
}

// The text between two others, or nothing.
inline std::string Between(const std::string& text, const std::string& from,
                           const std::string& to) {
  const size_t begin = text.find(from);
  if (begin == text.npos) {
    return "";
  }
  const size_t end = text.find(to, begin + from.size());
  return text.substr(begin + from.size(), end == text.npos ? end : end - begin - from.size());
}

// A user who has opened the address that `ferryctl web` prints.
struct WebVisitor {
  explicit WebVisitor(const std::string& address) {
    port = static_cast<uint16_t>(std::stoi("0" + Between(address, "127.0.0.1:", "/")));
    entrance = "/" + Between(address, std::to_string(port) + "/", "\n");
    const std::string answer = Talk(port, Request(entrance));
    cookie = "Cookie: " + Between(answer, "Set-Cookie: ", ";") + "\r\n";
    folder = Between(answer, "Path=", ";");
  }
  std::string Get(const std::string& name, const std::string& headers = "") const {
    return Talk(port, Request(folder + name, cookie + headers));
  }

  uint16_t port = 0;
  std::string entrance;
  std::string cookie;  // the header
  std::string folder;
};

// The events of the page, and the state that they tell.
class WebEvents {
 public:
  explicit WebEvents(const WebVisitor& visitor) : connection_(visitor.port) {
    connection_.Send(Request(visitor.folder + "events", visitor.cookie));
    while (head_.empty() && connection_.ReadSome()) {
      const size_t end = connection_.text().find("\r\n\r\n");
      if (end != std::string::npos) {
        head_ = connection_.text().substr(0, end + 2);
        connection_.text().erase(0, end + 4);
      }
    }
  }
  const std::string& head() const { return head_; }

  // Takes the next event: its kind, or nothing if the server has hung up.
  std::string Next() {
    size_t end = 0;
    while ((end = connection_.text().find("\n\n")) == std::string::npos) {
      if (!connection_.ReadSome()) {
        return "";
      }
    }
    const std::string event = connection_.text().substr(0, end);
    connection_.text().erase(0, end + 2);
    const std::string kind = Between(event, "event: ", "\n");
    const auto data = nlohmann::json::parse(Between(event, "data: ", "\n"), nullptr, false);
    EXPECT_FALSE(data.is_discarded()) << event;
    bytes = event.size();
    time = data.value("t", uint64_t{0});
    if (kind == "snapshot") {
      state = data["state"];
    } else {
      EXPECT_FALSE(state.is_null()) << "a change of nothing";
      state.merge_patch(data["change"]);
    }
    return kind;
  }

  nlohmann::json state;
  uint64_t time = 0;
  size_t bytes = 0;  // of the last event

 private:
  WebConnection connection_;
  std::string head_;
};

}  // namespace ferry::tests

// WebServer: serves the page and its events over HTTP/1.1 on loopback (Boost.Beast).
//
// One thread serves all connections; it sleeps between them, and waits for no client. Clients, of
// whichever user, have bounds: 8 KiB for a request, and five seconds; 32 connections that have no
// answer yet, of which a new one replaces the oldest; eight readers of events, each with 64 KiB in
// the kernel and no copy of its own in this process (event_log.h). A reader that does not take an
// event within thirty seconds is hung up on.
//
// Nothing that a request says changes anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "tools/ferryctl/web/feed.h"

namespace ferry::tools {

// The page, with @NONCE@ where the nonce of its style and its script belongs.
extern const std::string_view kWebPage;

struct WebOptions {
  uint16_t port = 0;  // 0: any that is free
  std::chrono::milliseconds request_patience{5'000};
  std::chrono::milliseconds reader_patience{30'000};
  FeedPace pace;
};

class WebServer {
 public:
  static constexpr size_t kMostWaiting = 32;
  static constexpr size_t kMostReaders = 8;
  static constexpr uint32_t kMostRequestBytes = 8 << 10;

  // Listens at 127.0.0.1. The inquiry's functions are called on a thread of its own (feed.h), and
  // may block. Errors: kAlreadyExists (the port is in use),
  // kSystem.
  static StatusOr<std::unique_ptr<WebServer>> Start(const WebOptions& options, Inquiry inquiry);
  // Waits for a look that is under way.
  virtual ~WebServer() = default;

  // "http://127.0.0.1:41234/?token=...": the whole of what one has to know.
  virtual const std::string& address() const = 0;
  virtual uint16_t port() const = 0;
  // How many readers of events there are. Any thread.
  virtual size_t readers() const = 0;
};

}  // namespace ferry::tools

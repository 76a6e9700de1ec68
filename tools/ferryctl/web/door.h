// Door: decides which of the page's answers a request gets. Pure but for the random words that it
// begins with; one thread.
//
// Other users of this machine can connect, and a browser carries requests of foreign pages. So:
//
// - The address that the user is told has a token. It leads to a cookie that scripts cannot read,
//   and that the browser sends with no request of a foreign page (SameSite=Strict).
// - Browsers send a cookie of this host to servers at all its ports, which other users may have. So
//   the cookie is for one folder only, whose name is random, too.
// - A foreign page whose name has been made to mean this machine (DNS rebinding) is told by the
//   header Host, which must be a name of loopback.
// - Each of these words is derived for itself, so that none of them tells another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/secret.h"
#include "common/status.h"
#include "tools/ferryctl/web/look.h"

namespace ferry::tools {

// The parts of a request that matter here. Headers that are absent are empty.
struct Knock {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  size_t hosts = 0;  // how many headers Host there are
  std::string_view cookie;
  std::string_view origin;
  std::string_view fetch_site;  // Sec-Fetch-Site
};

enum class Room {
  kBadRequest,   // not what a browser sends
  kForeignHost,  // of a page that is not this one
  kReadOnly,     // a method other than GET
  kForbidden,    // without the token or the cookie
  kNotFound,
  kEntrance,  // gets the cookie, and is led on
  kPage,
  kEvents,
  kWhy,  // of one rank, which QuestionOf has
};

// Reads the question in a target of kWhy, "/3fa.../why?rank=3&job=a%20b". Nothing: there is none.
std::optional<RankQuestion> QuestionOf(std::string_view target);

class Door {
 public:
  // kSystem: there are no random bytes.
  static StatusOr<Door> Make();

  Room RoomFor(const Knock& knock) const;

  // "/?token=..."
  std::string Address() const;
  // "/3fa.../", where the page is; below it are its events, "events", and the answers, "why".
  const std::string& folder() const { return folder_; }
  // The value of Set-Cookie.
  std::string Cookie() const;
  // A word for the scripts of one answer (Content-Security-Policy).
  std::string NewNonce();

 private:
  explicit Door(const SecretSource& source);

  SecretSource source_;
  Secret token_;
  Secret cookie_;
  std::string folder_;
  uint64_t nonces_ = 0;
};

}  // namespace ferry::tools

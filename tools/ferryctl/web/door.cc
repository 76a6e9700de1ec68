#include "tools/ferryctl/web/door.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "common/hex_text.h"

namespace ferry::tools {
namespace {

constexpr char kCookieName[] = "ferry-web";
constexpr std::string_view kTokenQuery = "token=";
constexpr size_t kMostCookies = 16;  // in one header

enum Purpose : uint64_t { kToken, kCookie, kFolder, kNonce };

std::string Hex(const Secret& secret) {
  return HexText({reinterpret_cast<const uint8_t*>(secret.data()), secret.size()});
}

// Compares in a time that tells nothing about the secret.
bool Matches(std::string_view text, const Secret& secret) {
  const std::string right = Hex(secret);
  if (text.size() != right.size()) {
    return false;
  }
  unsigned char differs = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    differs |= static_cast<unsigned char>(text[i] ^ right[i]);
  }
  return differs == 0;
}

// The port does not count: a tunnel has another one.
bool IsLoopbackName(std::string_view host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  if (colon != host.npos && (bracket == host.npos || colon > bracket)) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 ||
        !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    host = host.substr(0, colon);
  }
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

// Returns true if one of the cookies in the header is that.
bool HasCookie(std::string_view header, const Secret& secret) {
  for (size_t i = 0; i < kMostCookies && !header.empty(); ++i) {
    const size_t end = std::min(header.find(';'), header.size());
    std::string_view cookie = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    cookie.remove_prefix(std::min(cookie.find_first_not_of(' '), cookie.size()));
    const size_t equals = cookie.find('=');
    if (equals != cookie.npos && cookie.substr(0, equals) == kCookieName &&
        Matches(cookie.substr(equals + 1), secret)) {
      return true;
    }
  }
  return false;
}

// Decodes what encodeURIComponent makes of any text. Nothing: a % without two digits.
std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text.size() - i < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<RankQuestion> QuestionOf(std::string_view target) {
  constexpr std::string_view kRank = "rank=";
  constexpr std::string_view kJob = "&job=";
  const std::string_view query = target.substr(std::min(target.find('?'), target.size() - 1) + 1);
  const size_t job = query.find(kJob);
  if (!query.starts_with(kRank) || job == query.npos) {
    return std::nullopt;
  }
  RankQuestion question;
  const char* const end = query.data() + job;
  const auto [after, error] = std::from_chars(query.data() + kRank.size(), end, question.rank);
  std::optional<std::string> job_id = Decoded(query.substr(job + kJob.size()));
  if (error != std::errc() || after != end || !job_id.has_value() || job_id->empty()) {
    return std::nullopt;
  }
  question.job_id = std::move(*job_id);
  return question;
}

StatusOr<Door> Door::Make() {
  StatusOr<SecretSource> source = SecretSource::Draw();
  FERRY_RETURN_IF_ERROR(source.status());
  return Door(*source);
}

Door::Door(const SecretSource& source)
    : source_(source),
      token_(source.For(0, kToken)),
      cookie_(source.For(0, kCookie)),
      folder_("/" + Hex(source.For(0, kFolder)) + "/") {}

std::string Door::Address() const { return "/?" + std::string(kTokenQuery) + Hex(token_); }

std::string Door::Cookie() const {
  return std::string(kCookieName) + "=" + Hex(cookie_) + "; Path=" + folder_ +
         "; HttpOnly; SameSite=Strict";
}

std::string Door::NewNonce() { return Hex(source_.For(++nonces_, kNonce)); }

Room Door::RoomFor(const Knock& knock) const {
  if (knock.hosts != 1 || knock.target.empty() || knock.target.front() != '/') {
    return Room::kBadRequest;
  }
  if (!IsLoopbackName(knock.host) ||
      (!knock.origin.empty() && knock.origin != "http://" + std::string(knock.host))) {
    return Room::kForeignHost;
  }
  if (knock.method != "GET") {
    return Room::kReadOnly;
  }
  const size_t question = std::min(knock.target.find('?'), knock.target.size());
  const std::string_view path = knock.target.substr(0, question);
  if (path == "/") {
    const std::string_view query = knock.target.substr(std::min(question + 1, knock.target.size()));
    return query.starts_with(kTokenQuery) && Matches(query.substr(kTokenQuery.size()), token_)
               ? Room::kEntrance
               : Room::kForbidden;
  }
  if (!HasCookie(knock.cookie, cookie_)) {
    return Room::kForbidden;
  }
  if (path == folder_) {
    return Room::kPage;
  }
  const bool is_own = knock.fetch_site.empty() || knock.fetch_site == "same-origin";
  if (path == folder_ + "events") {
    return is_own ? Room::kEvents : Room::kForbidden;
  }
  if (path == folder_ + "why") {
    return is_own ? Room::kWhy : Room::kForbidden;
  }
  return Room::kNotFound;
}

}  // namespace ferry::tools

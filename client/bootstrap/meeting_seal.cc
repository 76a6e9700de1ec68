#include "client/bootstrap/meeting_seal.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace ferry::client {
namespace {

// The use of a key: no two of them are derived from the same bytes.
enum class Purpose : uint8_t { kStream = 1, kTag = 2 };

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Secret Derive(const Secret& key, const ConnectionNumbers& numbers, Direction direction,
              Purpose purpose) {
  std::array<std::byte, 2 * sizeof(Secret) + 2> bytes;
  std::copy(numbers.caller.begin(), numbers.caller.end(), bytes.begin());
  std::copy(numbers.server.begin(), numbers.server.end(), bytes.begin() + sizeof(Secret));
  bytes[2 * sizeof(Secret)] = static_cast<std::byte>(direction);
  bytes[2 * sizeof(Secret) + 1] = static_cast<std::byte>(purpose);
  return SipHash(key, bytes);
}

}  // namespace

Secret KeyOfText(std::string_view text) {
  constexpr std::string_view kName = "Ferry's meeting";
  Secret key{};
  std::memcpy(key.data(), kName.data(), kName.size());
  static_assert(kName.size() < sizeof(key));
  return SipHash(key, BytesOf(text));
}

StatusOr<Secret> DrawNumber() {
  Secret number;
  if (getrandom(number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    return StatusFromErrno(errno, "getrandom");
  }
  return number;
}

MeetingSeal::MeetingSeal(const Secret& key, const ConnectionNumbers& numbers, Direction direction)
    : stream_key_(Derive(key, numbers, direction, Purpose::kStream)),
      tag_key_(Derive(key, numbers, direction, Purpose::kTag)) {}

Secret MeetingSeal::TagOf(std::string_view encrypted) const {
  std::string text(sizeof(packet_), '\0');
  std::memcpy(text.data(), &packet_, sizeof(packet_));
  text.append(encrypted);
  return SipHash(tag_key_, BytesOf(text));
}

void MeetingSeal::Encrypt(std::string* words) const {
  for (size_t at = 0; at < words->size(); at += sizeof(Secret)) {
    const uint64_t place[] = {packet_, at};
    const Secret stream = SipHash(stream_key_, std::as_bytes(std::span(place)));
    const size_t end = std::min(words->size() - at, stream.size());
    for (size_t i = 0; i < end; ++i) {
      (*words)[at + i] = static_cast<char>((*words)[at + i] ^ std::to_integer<char>(stream[i]));
    }
  }
}

std::string MeetingSeal::Close(std::string_view words) {
  std::string packet(words);
  Encrypt(&packet);
  const Secret tag = TagOf(packet);
  packet.append(reinterpret_cast<const char*>(tag.data()), tag.size());
  ++packet_;
  return packet;
}

std::optional<std::string> MeetingSeal::Open(std::string_view packet) {
  if (packet.size() < kTagBytes) {
    return std::nullopt;
  }
  std::string words(packet.substr(0, packet.size() - kTagBytes));
  Secret tag;
  std::memcpy(tag.data(), packet.data() + words.size(), tag.size());
  if (!SameSecret(tag, TagOf(words))) {
    return std::nullopt;
  }
  Encrypt(&words);
  ++packet_;
  return words;
}

}  // namespace ferry::client

#include "common/secret.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace ferry {
namespace {

static_assert(std::endian::native == std::endian::little);

uint64_t WordAt(const std::byte* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Take(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
  uint64_t Finish() {
    for (int i = 0; i < 4; i++) {
      Round();
    }
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

bool SameSecret(const Secret& a, const Secret& b) {
  // The compiler must not see that it could stop early.
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); i++) {
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
    asm volatile("" : "+r"(difference));
  }
  return difference == 0;
}

Secret SipHash(const Secret& key, std::span<const std::byte> text) {
  const uint64_t k0 = WordAt(key.data());
  const uint64_t k1 = WordAt(key.data() + sizeof(k0));
  SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
                 k1 ^ 0x7465646279746573};
  const uint64_t length = text.size();
  for (; text.size() >= sizeof(uint64_t); text = text.subspan(sizeof(uint64_t))) {
    state.Take(WordAt(text.data()));
  }
  uint64_t last = length << 56;
  if (!text.empty()) {
    std::memcpy(&last, text.data(), text.size());
  }
  state.Take(last);
  state.v2 ^= 0xee;
  const uint64_t low = state.Finish();
  state.v1 ^= 0xdd;
  const uint64_t words[] = {low, state.Finish()};
  Secret secret;
  std::memcpy(secret.data(), words, sizeof(words));
  return secret;
}

StatusOr<SecretSource> SecretSource::Draw() {
  Secret key;
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    return StatusFromErrno(errno, "getrandom");
  }
  return SecretSource(key);
}

Secret SecretSource::For(uint64_t whom, uint64_t purpose) const {
  const uint64_t words[] = {whom, purpose};
  return SipHash(key_, std::as_bytes(std::span(words)));
}

}  // namespace ferry

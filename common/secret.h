// Secrets that one process shares with one other each: they are derived from random bytes that only
// the process has, so that it need not store them, and requests of strangers cost no memory.
//
// Calling thread: any. Only SecretSource::Draw may block, and only before the kernel's pool is
// ready at boot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/status.h"

namespace ferry {

using Secret = std::array<std::byte, 16>;

// Compares two secrets, in the same time for all that differ.
bool SameSecret(const Secret& a, const Secret& b);

// SipHash-2-4 with a result of 128 bits (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// INDOCRYPT 2012, and its reference implementation): without the key the results cannot be told
// from random bytes. It is here because ranks need it, which do without OpenSSL.
Secret SipHash(const Secret& key, std::span<const std::byte> text);

class SecretSource {
 public:
  // Draws the random bytes. Errors: kSystem (there are none).
  static StatusOr<SecretSource> Draw();
  // Returns the secret for one `whom` and one purpose: it tells nothing of any other.
  Secret For(uint64_t whom, uint64_t purpose) const;

 private:
  explicit SecretSource(const Secret& key) : key_(key) {}
  Secret key_;
};

}  // namespace ferry

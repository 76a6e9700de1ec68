// Secrets that one process shares with one other each: they are derived from random bytes that
// only the process has, so that nobody has to store them, and strangers who ask cost no memory.
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

// Takes the same time for all secrets that differ.
bool SameSecret(const Secret& a, const Secret& b);

// SipHash-2-4 with a result of 128 bits (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// INDOCRYPT 2012, and its reference implementation): nobody without the key can tell the results
// from random bytes. Here because ranks need it, which do without OpenSSL.
Secret SipHash(const Secret& key, std::span<const std::byte> text);

class SecretSource {
 public:
  // Errors: kSystem (there are no random bytes).
  static StatusOr<SecretSource> Draw();
  // The secret for one `whom` and one purpose: it tells nothing of any other.
  Secret For(uint64_t whom, uint64_t purpose) const;

 private:
  explicit SecretSource(const Secret& key) : key_(key) {}
  Secret key_;
};

}  // namespace ferry

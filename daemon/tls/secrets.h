// Random numbers, and proofs that a peer knows a job's secret.
//
// Any thread. Only getrandom may block, and only before the kernel's pool is ready at boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ferry::daemon {

// Fills `bytes` from getrandom(2).
void FillRandom(std::span<uint8_t> bytes);
// A random number that is not 0.
uint64_t RandomId();

// Compares in a time that does not depend on where the two differ (lengths are no secret).
bool ConstantTimeEquals(std::string_view a, std::string_view b);

// HMAC-SHA256 (RFC 2104) over job and sender: a daemon that knows the job's secret made it.
std::string JobProof(std::string_view secret, std::string_view job_id, uint64_t incarnation);
// Derives a number, never 0, that cannot be found without the secret.
uint64_t DeriveKey(std::string_view secret, std::string_view text);
// DeriveToken derives 32 bytes that cannot be found without the secret. HashOfToken makes a hash by
// which a token can be checked, but not found.
std::string DeriveToken(std::string_view secret, std::string_view text);
std::string HashOfToken(std::string_view token);

}  // namespace ferry::daemon

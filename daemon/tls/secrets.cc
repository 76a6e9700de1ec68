#include "daemon/tls/secrets.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cstdlib>
#include <cstring>

namespace ferry::daemon {
namespace {

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &size) == nullptr) {
    std::abort();  // only without memory, or without SHA-256 in the library
  }
  digest.resize(size);
  return digest;
}

}  // namespace

void FillRandom(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t filled = getrandom(bytes.data(), bytes.size(), 0);
    if (filled < 0 && errno != EINTR) {
      std::abort();  // a predictable key would be worse than no daemon
    }
    bytes = bytes.subspan(filled > 0 ? static_cast<size_t>(filled) : 0);
  }
}

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) {
    FillRandom({reinterpret_cast<uint8_t*>(&id), sizeof(id)});
  }
  return id;
}

bool ConstantTimeEquals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

std::string JobProof(std::string_view secret, std::string_view job_id, uint64_t incarnation) {
  return HmacSha256(secret, std::string(job_id) + "|" + std::to_string(incarnation));
}

std::string DeriveToken(std::string_view secret, std::string_view text) {
  return HmacSha256(secret, "token|" + std::string(text));
}

std::string HashOfToken(std::string_view token) { return HmacSha256(token, "hash of a token"); }

uint64_t DeriveKey(std::string_view secret, std::string_view text) {
  const std::string digest = HmacSha256(secret, text);
  uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof(key));
  return key == 0 ? 1 : key;
}

}  // namespace ferry::daemon

// What two peers of a GreetingTransport say to each other, and their addresses.
//
// Calling thread: any. Nothing blocks, but the drawing of random bytes in the first moments of a
// machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/secret.h"
#include "common/status.h"

namespace ferry::transport {

inline constexpr uint32_t kGreetingMagic = 0x4852'5246;  // "FRRH"; another one for each version

enum class GreetingKind : uint32_t {
  kHello = 1,    // body: GreetingBody; until it is answered, or the peer has greeted
  kWelcome = 2,  // body: GreetingBody; the answer to each kHello
  kMessage = 3,  // body: what the user of the transport sends
  kProbe = 4,    // have you heard all?
  kAnswer = 5,   // to a kProbe
  kGoodbye = 6,  // nothing more comes, and nothing more is heard
};

// Before everything that one says to the other.
struct Envelope {
  uint32_t magic = kGreetingMagic;
  uint32_t kind = 0;    // GreetingKind
  uint64_t name = 0;    // by which the receiver knows the sender; not of a kHello
  Secret secret{};      // of the connection, as the receiver has drawn it; not of a kHello
  uint32_t number = 0;  // how many messages the sender has sent, with this one
  uint32_t heard = 0;   // and has heard
};
static_assert(sizeof(Envelope) == 40 && std::is_trivially_copyable_v<Envelope>);

// The most of an address of the transport below, and of one that has a secret besides.
inline constexpr uint32_t kAddressBelowBytes = 64;
inline constexpr uint32_t kGreetingAddressBytes =
    kAddressBelowBytes + sizeof(uint32_t) + sizeof(Secret);

struct GreetingBody {
  uint64_t nonce = 0;  // of this connection, drawn by the sender
  uint64_t name = 0;   // by which the sender knows the receiver
  Secret secret{};     // that the sender wants to hear
  Secret proof{};      // GreetingProof
  uint32_t address_bytes = 0;
  uint32_t reserved = 0;
  std::array<std::byte, kAddressBelowBytes> address{};  // of the sender's transport below
};
static_assert(sizeof(GreetingBody) == 120 && std::is_trivially_copyable_v<GreetingBody>);

// By which whoever greets, or answers, proves that it has the secret, without showing it: a process
// that has taken the address of a peer learns nothing of use. A kHello is proved by the receiver's
// secret for the sender; a kWelcome by the sender's, with the nonce of the kHello.
Secret GreetingProof(const Secret& secret, uint64_t asked_nonce, GreetingBody body);

// The address of the transport below, with the name of its provider and the secret by which the
// peer that it is for proves who it is.
struct GreetingAddress {
  Secret secret{};
  std::span<const std::byte> below;  // in the bytes that it was read from
};
std::vector<std::byte> WriteGreetingAddress(const std::string& provider, const Secret& secret,
                                            std::span<const std::byte> below);
// Nothing if these bytes are no such address of that provider.
std::optional<GreetingAddress> ReadGreetingAddress(const std::string& provider,
                                                   std::span<const std::byte> bytes);
// For people: "127.0.0.1:4711" of a socket's address, else the bytes.
std::string GreetingAddressText(std::span<const std::byte> below);

Status DrawRandom(std::span<std::byte> bytes);

}  // namespace ferry::transport

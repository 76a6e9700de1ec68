// The messages that two peers of a GreetingTransport exchange, and their addresses.
//
// Calling thread: any. Nothing blocks, but for DrawRandom in the first moments after a machine's
// boot.
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

inline constexpr uint32_t kGreetingMagic = 0x4852'5246;  // "FRRH"; changes with each version

enum class GreetingKind : uint32_t {
  kHello = 1,    // body: GreetingBody; until it is answered, or the peer has greeted
  kWelcome = 2,  // body: GreetingBody; the answer to each kHello
  kMessage = 3,  // body: a message of the transport's user
  kProbe = 4,    // asks whether all messages have arrived
  kAnswer = 5,   // to a kProbe
  kGoodbye = 6,  // the sender sends, and takes, nothing more
};

// The header of every message between two peers.
struct Envelope {
  uint32_t magic = kGreetingMagic;
  uint32_t kind = 0;    // GreetingKind
  uint64_t name = 0;    // by which the receiver knows the sender; not in a kHello
  Secret secret{};      // of the connection, as the receiver has drawn it; not in a kHello
  uint32_t number = 0;  // how many messages the sender has sent, including this one
  uint32_t heard = 0;   // and how many it has received
};
static_assert(sizeof(Envelope) == 40 && std::is_trivially_copyable_v<Envelope>);

// The most bytes of an address of the transport below, and of one with a secret.
inline constexpr uint32_t kAddressBelowBytes = 64;
inline constexpr uint32_t kGreetingAddressBytes =
    kAddressBelowBytes + sizeof(uint32_t) + sizeof(Secret);

struct GreetingBody {
  uint64_t nonce = 0;  // of this connection, drawn by the sender
  uint64_t name = 0;   // by which the sender knows the receiver
  Secret secret{};     // that messages to the sender must carry
  Secret proof{};      // GreetingProof
  uint32_t address_bytes = 0;
  uint32_t reserved = 0;
  std::array<std::byte, kAddressBelowBytes> address{};  // of the sender's transport below
};
static_assert(sizeof(GreetingBody) == 120 && std::is_trivially_copyable_v<GreetingBody>);

// Computes the proof by which the sender of a greeting, or of an answer, shows that it has the
// secret, without revealing it: a process that has taken the address of a peer learns nothing of
// use. A kHello is proved by the receiver's secret for the sender; a kWelcome by the sender's, with
// the nonce of the kHello.
Secret GreetingProof(const Secret& secret, uint64_t asked_nonce, GreetingBody body);

// The address of the transport below, with the name of its provider and the secret by which the
// peer for which the address was made proves its identity.
struct GreetingAddress {
  Secret secret{};
  std::span<const std::byte> below;  // points into the bytes from which it was read
};
std::vector<std::byte> WriteGreetingAddress(const std::string& provider, const Secret& secret,
                                            std::span<const std::byte> below);
// nullopt if these bytes are not an address of that provider.
std::optional<GreetingAddress> ReadGreetingAddress(const std::string& provider,
                                                   std::span<const std::byte> bytes);
// The address for people to read: "127.0.0.1:4711" of a socket's address, else the bytes.
std::string GreetingAddressText(std::span<const std::byte> below);

Status DrawRandom(std::span<std::byte> bytes);

}  // namespace ferry::transport

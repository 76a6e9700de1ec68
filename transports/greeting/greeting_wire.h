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

#include "common/status.h"

namespace ferry::transport {

using GreetingSecret = std::array<std::byte, 16>;

inline constexpr uint32_t kGreetingMagic = 0x4752'5246;  // "FRRG"; another one for each version

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
  uint32_t kind = 0;        // GreetingKind
  uint64_t name = 0;        // by which the receiver knows the sender; not of a kHello
  GreetingSecret secret{};  // of the receiver: of its address for a kHello, else of the connection
  uint32_t number = 0;      // how many messages the sender has sent, with this one
  uint32_t heard = 0;       // and has heard
};
static_assert(sizeof(Envelope) == 40 && std::is_trivially_copyable_v<Envelope>);

inline constexpr uint32_t kGreetingAddressBytes = 64;

struct GreetingBody {
  uint64_t nonce = 0;       // of this connection, drawn by the sender
  uint64_t name = 0;        // by which the sender knows the receiver
  GreetingSecret secret{};  // that the sender wants to hear
  uint32_t address_bytes = 0;
  uint32_t reserved = 0;
  std::array<std::byte, kGreetingAddressBytes> address{};  // of the sender
};
static_assert(sizeof(GreetingBody) == 104 && std::is_trivially_copyable_v<GreetingBody>);

// The address of the transport below, with the name of its provider and the secret by which peers
// prove that they were told of it.
struct GreetingAddress {
  GreetingSecret secret{};
  std::span<const std::byte> below;  // in the bytes that it was read from
};
std::vector<std::byte> WriteGreetingAddress(const std::string& provider,
                                            const GreetingSecret& secret,
                                            std::span<const std::byte> below);
// Nothing if these bytes are no such address of that provider.
std::optional<GreetingAddress> ReadGreetingAddress(const std::string& provider,
                                                   std::span<const std::byte> bytes);
// For people: "127.0.0.1:4711" of a socket's address, else the bytes.
std::string GreetingAddressText(std::span<const std::byte> below);

// Takes the same time for all secrets that differ.
bool IsSameGreeting(const GreetingSecret& a, const GreetingSecret& b);
Status DrawRandom(std::span<std::byte> bytes);

}  // namespace ferry::transport

// How peers name memory that several NICs have registered, each NIC by a key of its own.
//
// The owner names the memory by one random key, which is never used again. When a peer first uses
// the key, it asks for the key on each rail, by a message on the first rail, and remembers the
// answer. So an offer of memory has one key, however many NICs there are. A known key stands for
// memory that is there, or was, but never for other memory; a NIC's own keys may be reused.
//
// Thread: the progress thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>

#include "transports/rails/rail_address.h"

namespace ferry::transport {

struct RailKey {
  uint64_t key = 0;
  uint64_t remote_base = 0;
};
using RailKeys = std::array<RailKey, kMaxRails>;

// A message between two nodes' rails themselves; its size and magic tell it from messages of their
// users.
struct RailMessage {
  // A probe goes by any rail, and its echo by the same rail; the other kinds go by the first.
  enum class Kind : uint32_t { kAsk = 1, kAnswer = 2, kUnknown = 3, kProbe = 4, kEcho = 5 };

  static constexpr uint64_t kMagic = 0x6567'6173'7365'4d52;  // "RMessage"

  uint64_t magic = kMagic;
  Secret to{};    // the receiver's cookie for the sender: proves who sends it
  Secret from{};  // the sender's for the receiver
  Kind kind = Kind::kAsk;
  uint32_t rails = 0;  // kAnswer: how many
  uint64_t key = 0;    // the memory's
  RailKeys keys{};     // kAnswer
};
static_assert(sizeof(RailMessage) == 56 + 16 * kMaxRails);
static_assert(std::is_trivially_copyable_v<RailMessage>);

// The message, if it is one.
inline std::optional<RailMessage> RailMessageIn(std::span<const std::byte> bytes) {
  RailMessage message;
  if (bytes.size() != sizeof(message)) {
    return std::nullopt;
  }
  std::memcpy(&message, bytes.data(), sizeof(message));
  return message.magic == RailMessage::kMagic ? std::optional(message) : std::nullopt;
}

// The known keys of one peer's memory.
class KnownKeys {
 public:
  // Null: not known (any more).
  const RailKeys* Find(uint64_t key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? nullptr : &found->second;
  }
  void Learn(uint64_t key, const RailKeys& keys) {
    if (keys_.size() >= kMost) {
      keys_.clear();  // the owner does not say which are gone; those in use are asked for again
    }
    keys_[key] = keys;
  }
  void Forget(uint64_t key) { keys_.erase(key); }

 private:
  static constexpr size_t kMost = 16384;
  std::unordered_map<uint64_t, RailKeys> keys_;
};

}  // namespace ferry::transport

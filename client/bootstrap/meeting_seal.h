// Packets that only processes with one secret can read and write, for the meeting of ranks.
//
// Both sides of a connection draw a number. Keys of each direction come from the secret and both
// numbers, so that no packet of another connection fits. SipHash (common/secret.h), whose values
// cannot be told from random bytes without the key, makes the key stream (counter mode) and, over
// the encrypted words, the tag. A packet that was changed, repeated, moved or left out does not
// open. A process that learns the secret later can read a recording: it must be a secret of one
// job.
//
// Calling thread: one at a time. Nothing blocks, but DrawNumber before the kernel's pool is ready
// at boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/secret.h"
#include "common/status.h"

namespace ferry::client {

// The two numbers of a connection.
struct ConnectionNumbers {
  Secret caller{};
  Secret server{};
};

// Returns the key that stands for a secret text.
Secret KeyOfText(std::string_view text);

// A number for one connection. kSystem: the kernel has no random bytes.
StatusOr<Secret> DrawNumber();

enum class Direction : uint8_t { kToServer = 1, kToCaller = 2 };

// The packets of one connection in one direction, in order: one side closes them, the other opens
// them.
class MeetingSeal {
 public:
  static constexpr size_t kTagBytes = sizeof(Secret);

  MeetingSeal(const Secret& key, const ConnectionNumbers& numbers, Direction direction);

  // Returns the next packet with these words: encrypted, kTagBytes longer.
  std::string Close(std::string_view words);
  // Returns the words of the next packet; nothing if its maker does not have the secret, or this is
  // not the packet that follows the last one.
  std::optional<std::string> Open(std::string_view packet);

 private:
  Secret TagOf(std::string_view encrypted) const;
  void Encrypt(std::string* words) const;  // and back

  Secret stream_key_;
  Secret tag_key_;
  uint64_t packet_ = 0;
};

}  // namespace ferry::client

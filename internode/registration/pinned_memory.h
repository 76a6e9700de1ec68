// Memory that the NIC knows, or soon will: the one owner of memory that is pinned, adopted,
// released and unpinned.
//
// The registrar's thread (registrar.h) pins and unpins; between the two the memory has a handle and
// a key. The end of this object lets go of it: a pinning under way is undone, and memory that the
// NIC still uses is unpinned when it lets go. `PinRequest::memory` is held until then. Owners that
// must know when that is call TryRelease first.
//
// If the registrar goes before this object, the transport must go in between: its end takes
// everything from the NIC.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/status.h"
#include "internode/registration/registrar.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class PinnedMemory {
 public:
  PinnedMemory() = default;  // none
  // Begins to pin the memory. Where the transport pins nothing, that has ended on return.
  PinnedMemory(Registrar& registrar, PinRequest request);
  PinnedMemory(PinnedMemory&&) noexcept = default;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory() { ReleaseAt(0); }

  // Returns kOk: it is pinned. kWouldBlock: not yet. kNotFound: there is no memory. kCancelled: see
  // Cancel. Any other code is that of the NIC's refusal.
  ErrorCode code() const;
  bool is_pinned() const { return code() == ErrorCode::kOk; }
  bool is_pinning() const { return code() == ErrorCode::kWouldBlock; }
  // `code` in words. Not while the memory is being pinned.
  const Status& status() const { return pinning_->status; }
  // Only if it is pinned.
  const transport::MemoryRegion& region() const { return pinning_->region; }

  // If the memory is being pinned, undoes that as soon as it ends.
  void Cancel();
  // Takes the memory from the NIC: peers' accesses by its key fail once the registrar has unpinned
  // it, and `unpinned` (may be null) is let go of. True: this object has no memory any more. False:
  // it is being pinned, or an operation of the NIC uses it; try again.
  bool TryRelease(std::shared_ptr<UnpinSignal> unpinned = nullptr);
  // Releases the memory, and pins it anew under another key. False: as for TryRelease; the old key
  // stays.
  bool TryRenew();
  // Gives the memory up: it is released at that time, or as soon after it as the NIC allows.
  void ReleaseAt(uint64_t time_ns);

 private:
  std::shared_ptr<Pinning> pinning_;
};

}  // namespace ferry::progress

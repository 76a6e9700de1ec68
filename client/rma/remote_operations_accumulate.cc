// RemoteOperations: accumulates. See remote_operations.h.
#include <algorithm>

#include "client/rma/remote_command.h"
#include "client/rma/remote_operations.h"

namespace ferry::client {

// Sends the operands in pieces of a cell each, which are carried out in this order. Elements that
// no CPU changes at once go to the daemon of their node, unless they have a lock.
ErrorCode RemoteOperations::Accumulate(OneSidedContext& context, const AccumulateCall& call,
                                       const void* operands, void* found, WhenDone when) {
  const RemoteAddress& place = call.place;
  const bool by_daemon =
      progress_.peers().by_rank[place.rank].local ||
      ((place.segment & kSegmentPrivate) == 0 && !call.what.IsAtomicAt(place.offset));
  Passage passage(this);
  ErrorCode error = passage.Enter(place, by_daemon);
  if (error != ErrorCode::kOk) {
    return error;
  }
  const uint64_t element_bytes = call.what.element_bytes();
  const uint64_t size_bytes = call.count * element_bytes;
  const uint64_t most_bytes =
      std::min<uint64_t>(shm::kCellBytes / element_bytes, shm::kMostAccumulated) * element_bytes;
  Call waits;
  for (uint64_t offset = 0; offset < size_bytes && error == ErrorCode::kOk;) {
    const uint64_t piece_bytes = std::min(size_bytes - offset, most_bytes);
    Command command(passage.core(), progress_.view().rank,
                    {place.rank, place.segment, place.offset + offset},
                    shm::OneSidedOperation::kAccumulate, piece_bytes);
    command.descriptor.tag = static_cast<int32_t>(call.what.packed());
    if (call.what.takes_operands()) {
      error = GiveData(&command, At(operands, offset), piece_bytes);
    }
    if (error == ErrorCode::kOk && found == nullptr) {
      error = Push(context, command);
    } else if (error == ErrorCode::kOk) {
      error = Ask(context, &command,
                  {.call = when == WhenDone::kAtReturn ? &waits : nullptr,
                   .to = const_cast<void*>(At(found, offset)),
                   .size_bytes = static_cast<uint32_t>(piece_bytes)});
    }
    offset += piece_bytes;
  }
  if (found != nullptr && when == WhenDone::kAtReturn) {  // after an error, too, as Get
    const ErrorCode answered = AwaitCall(&waits, place.rank);
    error = error == ErrorCode::kOk ? answered : error;
  }
  return error;
}

}  // namespace ferry::client

// The C API of one_sided.h over client/api/one_sided.h. It checks arguments, turns codes into
// sentences and strided transfers into plain ones.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/api/block_moves.h"
#include "client/c_api/running.h"
#include "client/memory/failure_words.h"
#include "include/ferry/one_sided.h"
#include "shm/word_copy.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::AtomicCall;
using ferry::client::Client;
using ferry::client::FailureWords;
using ferry::client::OneSided;
using ferry::client::OneSidedContext;
using ferry::client::RemoteAddress;
using ferry::client::WhenDone;
using ferry::client::WithClient;
using ferry::gpu::StridedCopy;
using ferry::shm::CopyWords;
using ferry::shm::OneSidedOperation;
using ferry::shm::SignalUpdate;

static_assert(FERRY_ATOMIC_FETCH == static_cast<int>(OneSidedOperation::kFetch));
static_assert(FERRY_ATOMIC_XOR == static_cast<int>(OneSidedOperation::kXor));
static_assert(FERRY_SIGNAL_ADD == static_cast<int>(SignalUpdate::kAdd));

// ---- Contexts -----------------------------------------------------------------------------------

// By handle: the place in the table + 1 and, above 32 bits, how often that was taken. Lookups take
// no lock.
class ContextTable {
 public:
  static constexpr uint32_t kPlaces = 4096;

  // 0: all places are taken.
  ferry_context Add(OneSidedContext* context) {
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < kPlaces; ++i) {
      Entry& entry = entries_[i];
      if (entry.handle.load(std::memory_order_relaxed) == 0) {
        const ferry_context handle = uint64_t{++entry.uses} << 32 | (i + 1);
        entry.context = context;
        entry.handle.store(handle, std::memory_order_release);  // Pairs with Find.
        return handle;
      }
    }
    return 0;
  }
  void Remove(ferry_context handle) {
    const std::lock_guard lock(mutex_);
    entries_[IndexOf(handle)].handle.store(0, std::memory_order_relaxed);
  }
  // Null: the handle names none.
  OneSidedContext* Find(ferry_context handle) const {
    const uint32_t index = IndexOf(handle);
    // Pairs with Add: acquires the context.
    return index < kPlaces && entries_[index].handle.load(std::memory_order_acquire) == handle
               ? entries_[index].context
               : nullptr;
  }

 private:
  struct Entry {
    std::atomic<ferry_context> handle;  // 0: free
    OneSidedContext* context;
    uint32_t uses;
  };
  static uint32_t IndexOf(ferry_context handle) { return static_cast<uint32_t>(handle) - 1; }

  std::mutex mutex_;  // of changes
  std::array<Entry, kPlaces> entries_{};
};

constinit ContextTable contexts;

// ---- Arguments ----------------------------------------------------------------------------------

// A call under way, for its sentences.
struct Call {
  const char* name;
  Client& client;
  OneSidedContext* context = nullptr;

  OneSided& one_sided() const { return client.one_sided(); }
  Status Refuse(ErrorCode error, const std::string& words) const {
    return {error, std::string(name) + ": " + words};
  }
  Status CheckRank(int rank) const {
    return rank >= 0 && static_cast<uint32_t>(rank) < client.size()
               ? Status()
               : Refuse(ErrorCode::kInvalidRank, "rank " + std::to_string(rank) +
                                                     " is not between 0 and " +
                                                     std::to_string(client.size() - 1));
  }
  Status CheckBuffer(const void* buffer, size_t size_bytes) const {
    return buffer != nullptr || size_bytes == 0
               ? Status()
               : Refuse(ErrorCode::kInvalidBuffer, "the buffer is null but " +
                                                       std::to_string(size_bytes) +
                                                       " bytes are to be moved");
  }
  Status CheckResult(const void* result) const {
    return result != nullptr
               ? Status()
               : Refuse(ErrorCode::kInvalidArgument, "the address for the result is null");
  }
  // In the words of this header, where the usual ones speak of messages.
  Status Explained(ErrorCode error, uint32_t rank) const;
};

Status Call::Explained(ErrorCode error, uint32_t rank) const {
  if (error == ErrorCode::kOk) [[likely]] {
    return {};
  }
  if (const std::string words = FailureWords::Take(error); !words.empty()) {
    return Refuse(error, words);
  }
  const std::string who = "rank " + std::to_string(rank);
  switch (error) {
    case ErrorCode::kPeerDied:
      return Refuse(error, who + " has died");
    case ErrorCode::kNotFound:
      return Refuse(error, who + " has left the job");
    case ErrorCode::kNodeUnreachable:
      return Refuse(error, "the ferryd of " + who + "'s node died or cannot be reached");
    case ErrorCode::kLinkDown:
      return Refuse(error, "the link to " + who +
                               "'s node was cut: operations with it may be lost; new ones will "
                               "pass once it is back");
    case ErrorCode::kInvalidBuffer:
      return Refuse(error, who +
                               " has no such segment, or the bytes do not all lie in it; ask that "
                               "rank's ferry_locate for a place, and free nothing too early");
    case ErrorCode::kInvalidArgument:
      return Refuse(
          error, "a word in the memory of " + who + " does not begin at a multiple of its width");
    case ErrorCode::kUnsupported:
      return Refuse(error, "only streams reach that memory of " + who +
                               ": it can be put to and got from, and has no words; use "
                               "FERRY_MEMORY_HOST or FERRY_MEMORY_PINNED");
    default:
      return Refuse(error, client.Explain(error).message());
  }
}

// Calls `use(call)` once the context is found.
template <typename Use>
int With(const char* name, ferry_context context, Use&& use) {
  return WithClient([&](Client& client) -> Status {
    Call call{name, client};
    if (context != FERRY_CONTEXT_DEFAULT) {
      call.context = contexts.Find(context);
      if (call.context == nullptr) {
        return call.Refuse(ErrorCode::kInvalidArgument,
                           "the handle names no context: destroyed before, or not what "
                           "ferry_context_create returned?");
      }
    }
    ferry::client::NamedCall noted(name);
    const ferry::client::CallScope scope(client.calls, &noted);
    return use(call);
  });
}

RemoteAddress RemoteAddressOf(const ferry_place& place, uint64_t offset = 0) {
  return {static_cast<uint32_t>(place.rank), place.segment, place.offset + offset};
}

int Get(const char* name, ferry_context context, void* to, const ferry_place& from,
        size_t size_bytes, WhenDone when) {
  return With(name, context, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckRank(from.rank));
    FERRY_RETURN_IF_ERROR(call.CheckBuffer(to, size_bytes));
    const RemoteAddress place = RemoteAddressOf(from);
    return call.Explained(call.one_sided().Get(call.context, to, place, size_bytes, when),
                          place.rank);
  });
}

int Atomic(const char* name, ferry_context context, ferry_atomic_operation operation,
           const ferry_place& word, int width, uint64_t operand, uint64_t compare, uint64_t* found,
           WhenDone when) {
  return With(name, context, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckRank(word.rank));
    if (operation < FERRY_ATOMIC_FETCH || operation > FERRY_ATOMIC_XOR) {
      return call.Refuse(
          ErrorCode::kInvalidArgument,
          "the operation is " + std::to_string(operation) + ", which is none of FERRY_ATOMIC_*");
    }
    if (width != 4 && width != 8) {
      return call.Refuse(ErrorCode::kInvalidArgument,
                         "the width is " + std::to_string(width) + "; words have 4 or 8 bytes");
    }
    const AtomicCall what{RemoteAddressOf(word), static_cast<OneSidedOperation>(operation),
                          static_cast<uint32_t>(width), operand, compare};
    return call.Explained(call.one_sided().Atomic(call.context, what, found, when),
                          what.place.rank);
  });
}

// ---- Strided transfers --------------------------------------------------------------------------

// Small blocks that are neighbours in the other rank's memory travel together, in so many bytes.
constexpr size_t kPackBytes = 8192;
// Blocks that devices copy in steps go through this much host memory at a time. Longer blocks may
// as well take a step each.
constexpr size_t kPassBytes = size_t{256} << 10;
constexpr size_t kLongBlockBytes = size_t{64} << 10;

struct Strided {
  ferry_place there;
  ptrdiff_t there_stride;
  std::byte* here;
  ptrdiff_t here_stride;
  size_t block_bytes;
  size_t blocks;

  RemoteAddress BlockThere(size_t i) const {
    return RemoteAddressOf(there, static_cast<uint64_t>(there_stride) * i);
  }
  std::byte* BlockHere(size_t i) const { return here + here_stride * static_cast<ptrdiff_t>(i); }
  bool are_neighbours_there() const { return there_stride == static_cast<ptrdiff_t>(block_bytes); }
  bool are_neighbours_here() const { return here_stride == static_cast<ptrdiff_t>(block_bytes); }
  bool is_plain() const { return blocks == 1 || (are_neighbours_there() && are_neighbours_here()); }
  bool IsOfNode(const Client& client) const {
    return client.NodeOf(static_cast<uint32_t>(there.rank)) == client.NodeOf(client.rank());
  }
  // Returns true if it pays that the CPU copies several blocks to, or from, one buffer.
  bool IsWorthPacking(const Client& client) const {
    return are_neighbours_there() && block_bytes <= kPackBytes / 2 && !IsOfNode(client);
  }
  // Returns true if a device takes one step for many blocks, at one end at least, where it would
  // otherwise take one for each.
  bool IsForDevices(const Client& client) const {
    return block_bytes <= kLongBlockBytes &&
           (client.IsByStream(here) ||
            ((there.segment & ferry::client::kSegmentByStream) != 0 && IsOfNode(client)));
  }
};

Status CheckStrided(const Call& call, const Strided& strided) {
  FERRY_RETURN_IF_ERROR(call.CheckRank(strided.there.rank));
  if (strided.blocks != 0 && strided.block_bytes > SIZE_MAX / strided.blocks) {
    return call.Refuse(ErrorCode::kInvalidArgument, std::to_string(strided.blocks) + " blocks of " +
                                                        std::to_string(strided.block_bytes) +
                                                        " bytes are more than there can be");
  }
  return call.CheckBuffer(strided.here, strided.block_bytes * strided.blocks);
}

ErrorCode PutPacked(const Call& call, const Strided& strided) {
  std::array<std::byte, kPackBytes> pack;
  const size_t together = kPackBytes / strided.block_bytes;
  for (size_t first = 0; first < strided.blocks; first += together) {
    const size_t count = std::min(together, strided.blocks - first);
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(pack.data() + i * strided.block_bytes, strided.BlockHere(first + i),
                  strided.block_bytes);
    }
    const ErrorCode error = call.one_sided().Put(call.context, strided.BlockThere(first),
                                                 pack.data(), count * strided.block_bytes);
    if (error != ErrorCode::kOk) {
      return error;
    }
  }
  return ErrorCode::kOk;
}

// Gathers the blocks here, or scatters them, by one step of a device if it is one's memory.
ErrorCode MoveHere(const Call& call, const Strided& strided, StridedCopy move) {
  // In memory that only streams reach all of them have to be, and what lies between, too.
  const std::byte* const last = static_cast<std::byte*>(move.blocks) +
                                strided.here_stride * static_cast<ptrdiff_t>(move.block_count - 1);
  const auto* const lowest = std::min<const std::byte*>(static_cast<std::byte*>(move.blocks), last);
  const auto* const highest =
      std::max<const std::byte*>(static_cast<std::byte*>(move.blocks), last);
  Status moved = call.client.memory().LookAt(
      lowest, static_cast<uint64_t>(highest - lowest) + strided.block_bytes);
  if (moved.ok()) {
    move.stride_bytes = strided.here_stride;
    moved = ferry::client::MoveBlocks(call.client, move, call.client.IsByStream(lowest));
  }
  return FailureWords::Tell(moved.code(), moved.message());
}

// Calls move(first block, packed) for as many blocks at a time as the pass holds.
template <typename Move>
ErrorCode InPasses(const Strided& strided, Move&& move) {
  const size_t most = std::min(kPassBytes / strided.block_bytes, strided.blocks);
  const auto pass = std::make_unique_for_overwrite<std::byte[]>(most * strided.block_bytes);
  ErrorCode error = ErrorCode::kOk;
  for (size_t first = 0; first < strided.blocks && error == ErrorCode::kOk; first += most) {
    error = move(first, StridedCopy{.blocks = strided.BlockHere(first),
                                    .packed = pass.get(),
                                    .block_bytes = strided.block_bytes,
                                    .block_count = std::min(most, strided.blocks - first)});
  }
  return error;
}

ErrorCode PutByDevices(const Call& call, const Strided& strided) {
  return InPasses(strided, [&](size_t first, StridedCopy pass) {
    ErrorCode error = MoveHere(call, strided, pass);
    if (error != ErrorCode::kOk) {
      return error;
    }
    if (strided.IsOfNode(call.client)) {
      pass.stride_bytes = strided.there_stride;
      pass.is_pack = false;
      return call.one_sided().MoveBlocksInNode(strided.BlockThere(first), pass);
    }
    const auto* const packed = static_cast<const std::byte*>(pass.packed);
    if (strided.are_neighbours_there()) {
      return call.one_sided().Put(call.context, strided.BlockThere(first), packed,
                                  pass.size_bytes());
    }
    for (size_t i = 0; i < pass.block_count && error == ErrorCode::kOk; ++i) {
      error = call.one_sided().Put(call.context, strided.BlockThere(first + i),
                                   packed + i * strided.block_bytes, strided.block_bytes);
    }
    return error;
  });
}

ErrorCode PutBlocks(const Call& call, const Strided& strided) {
  if (strided.is_plain()) {
    return call.one_sided().Put(call.context, strided.BlockThere(0), strided.here,
                                strided.block_bytes * strided.blocks);
  }
  if (strided.IsForDevices(call.client)) {
    return PutByDevices(call, strided);
  }
  if (strided.IsWorthPacking(call.client)) {
    return PutPacked(call, strided);
  }
  ErrorCode error = ErrorCode::kOk;
  for (size_t i = 0; i < strided.blocks && error == ErrorCode::kOk; ++i) {
    error = call.one_sided().Put(call.context, strided.BlockThere(i), strided.BlockHere(i),
                                 strided.block_bytes);
  }
  return error;
}

// Gets all at once, so that the way back and forth is paid for once. By a context of its own: the
// caller's may have other things under way, which this call must not wait for.
ErrorCode GetOneByOne(const Call& call, const Strided& strided) {
  OneSided& one_sided = call.one_sided();
  OneSidedContext* const own = one_sided.MakeContext();
  ErrorCode error = ErrorCode::kOk;
  for (size_t i = 0; i < strided.blocks && error == ErrorCode::kOk; ++i) {
    error = one_sided.Get(own, strided.BlockHere(i), strided.BlockThere(i), strided.block_bytes,
                          WhenDone::kAtQuiet);
  }
  const ErrorCode ended = one_sided.Quiet(own, nullptr);
  one_sided.FreeContext(own);
  return error == ErrorCode::kOk ? ended : error;
}

ErrorCode GetByDevices(const Call& call, const Strided& strided) {
  return InPasses(strided, [&](size_t first, StridedCopy pass) {
    ErrorCode error = ErrorCode::kOk;
    if (strided.IsOfNode(call.client)) {
      pass.stride_bytes = strided.there_stride;
      error = call.one_sided().MoveBlocksInNode(strided.BlockThere(first), pass);
    } else if (strided.are_neighbours_there()) {
      error = call.one_sided().Get(call.context, pass.packed, strided.BlockThere(first),
                                   pass.size_bytes(), WhenDone::kAtReturn);
    } else {
      Strided packed = strided;
      packed.there.offset = strided.BlockThere(first).offset;
      packed.here = static_cast<std::byte*>(pass.packed);
      packed.here_stride = static_cast<ptrdiff_t>(strided.block_bytes);
      packed.blocks = pass.block_count;
      error = GetOneByOne(call, packed);
    }
    pass.is_pack = false;
    return error == ErrorCode::kOk ? MoveHere(call, strided, pass) : error;
  });
}

ErrorCode GetBlocks(const Call& call, const Strided& strided) {
  OneSided& one_sided = call.one_sided();
  const size_t size_bytes = strided.block_bytes * strided.blocks;
  if (strided.is_plain()) {
    return one_sided.Get(call.context, strided.here, strided.BlockThere(0), size_bytes,
                         WhenDone::kAtReturn);
  }
  if (strided.IsForDevices(call.client)) {
    return GetByDevices(call, strided);
  }
  if (strided.IsWorthPacking(call.client)) {
    std::vector<std::byte> pack(size_bytes);
    const ErrorCode error = one_sided.Get(call.context, pack.data(), strided.BlockThere(0),
                                          size_bytes, WhenDone::kAtReturn);
    for (size_t i = 0; i < strided.blocks && error == ErrorCode::kOk; ++i) {
      CopyWords(strided.BlockHere(i), pack.data() + i * strided.block_bytes, strided.block_bytes);
    }
    return error;
  }
  return GetOneByOne(call, strided);
}

using MoveAll = ErrorCode (*)(const Call&, const Strided&);

int MoveStrided(const char* name, ferry_context context, const Strided& strided, MoveAll move) {
  return With(name, context, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(CheckStrided(call, strided));
    return strided.block_bytes * strided.blocks == 0
               ? Status()
               : call.Explained(move(call, strided), static_cast<uint32_t>(strided.there.rank));
  });
}

int Put(const char* name, ferry_context context, const ferry_place& to, const void* from,
        size_t size_bytes, WhenDone when) {
  return With(name, context, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckRank(to.rank));
    FERRY_RETURN_IF_ERROR(call.CheckBuffer(from, size_bytes));
    const RemoteAddress place = RemoteAddressOf(to);
    return call.Explained(call.one_sided().Put(call.context, place, from, size_bytes, {}, when),
                          place.rank);
  });
}

}  // namespace

extern "C" {

int ferry_locate(const void* pointer, size_t size_bytes, ferry_place* place) {
  return With("ferry_locate", FERRY_CONTEXT_DEFAULT, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckResult(place));
    const ferry::shm::Location where = call.client.one_sided().Locate(pointer, size_bytes);
    if (where.region == 0) {
      return call.Refuse(ErrorCode::kInvalidBuffer,
                         "these " + std::to_string(size_bytes) +
                             " bytes do not all lie in memory that others may reach; take it from "
                             "ferry_alloc");
    }
    *place = {static_cast<int32_t>(call.client.rank()), ferry::client::SegmentOf(where),
              where.address};
    return {};
  });
}

int ferry_context_create(ferry_context* context) {
  return With("ferry_context_create", FERRY_CONTEXT_DEFAULT, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckResult(context));
    OneSidedContext* const made = call.one_sided().MakeContext();
    *context = contexts.Add(made);
    if (*context == 0) {
      call.one_sided().FreeContext(made);
      return call.Refuse(ErrorCode::kLimitExceeded, "there are " +
                                                        std::to_string(ContextTable::kPlaces) +
                                                        " contexts already; destroy some first");
    }
    return {};
  });
}

int ferry_context_destroy(ferry_context* context) {
  const char* const name = "ferry_context_destroy";
  const ferry_context handle = context != nullptr ? *context : FERRY_CONTEXT_DEFAULT;
  return With(name, handle, [&](const Call& call) -> Status {
    if (call.context == nullptr) {
      return call.Refuse(ErrorCode::kInvalidArgument,
                         context == nullptr ? "the address of the context is null"
                                            : "FERRY_CONTEXT_DEFAULT cannot be destroyed");
    }
    uint32_t rank = 0;
    const ErrorCode error = call.one_sided().Quiet(call.context, &rank);
    contexts.Remove(handle);
    call.one_sided().FreeContext(call.context);
    *context = FERRY_CONTEXT_DEFAULT;
    return call.Explained(error, rank);
  });
}

int ferry_put(ferry_context context, ferry_place to, const void* from, size_t size_bytes) {
  return Put("ferry_put", context, to, from, size_bytes, WhenDone::kAtReturn);
}

int ferry_put_nbi(ferry_context context, ferry_place to, const void* from, size_t size_bytes) {
  return Put("ferry_put_nbi", context, to, from, size_bytes, WhenDone::kAtQuiet);
}

int ferry_put_signal(ferry_context context, ferry_place to, const void* from, size_t size_bytes,
                     ferry_signal_update update, ferry_place signal, uint64_t value) {
  return With("ferry_put_signal", context, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckRank(to.rank));
    FERRY_RETURN_IF_ERROR(call.CheckBuffer(from, size_bytes));
    if (update != FERRY_SIGNAL_SET && update != FERRY_SIGNAL_ADD) {
      return call.Refuse(ErrorCode::kInvalidArgument, "the update is " + std::to_string(update) +
                                                          ", which is none of FERRY_SIGNAL_*");
    }
    if (signal.rank != to.rank) {
      return call.Refuse(ErrorCode::kInvalidRank, "the data go to rank " + std::to_string(to.rank) +
                                                      ", but the signal is in the memory of rank " +
                                                      std::to_string(signal.rank));
    }
    const RemoteAddress place = RemoteAddressOf(to);
    return call.Explained(call.one_sided().Put(call.context, place, from, size_bytes,
                                               {static_cast<SignalUpdate>(update), signal.segment,
                                                signal.offset, value}),
                          place.rank);
  });
}

int ferry_get(ferry_context context, void* to, ferry_place from, size_t size_bytes) {
  return Get("ferry_get", context, to, from, size_bytes, WhenDone::kAtReturn);
}

int ferry_get_nbi(ferry_context context, void* to, ferry_place from, size_t size_bytes) {
  return Get("ferry_get_nbi", context, to, from, size_bytes, WhenDone::kAtQuiet);
}

int ferry_iput(ferry_context context, ferry_place to, ptrdiff_t to_stride_bytes, const void* from,
               ptrdiff_t from_stride_bytes, size_t block_bytes, size_t blocks) {
  auto* const here = static_cast<std::byte*>(const_cast<void*>(from));
  return MoveStrided("ferry_iput", context,
                     {to, to_stride_bytes, here, from_stride_bytes, block_bytes, blocks},
                     PutBlocks);
}

int ferry_iget(ferry_context context, void* to, ptrdiff_t to_stride_bytes, ferry_place from,
               ptrdiff_t from_stride_bytes, size_t block_bytes, size_t blocks) {
  auto* const here = static_cast<std::byte*>(to);
  return MoveStrided("ferry_iget", context,
                     {from, from_stride_bytes, here, to_stride_bytes, block_bytes, blocks},
                     GetBlocks);
}

int ferry_atomic(ferry_context context, ferry_atomic_operation operation, ferry_place word,
                 int width, uint64_t operand, uint64_t compare) {
  return Atomic("ferry_atomic", context, operation, word, width, operand, compare, nullptr,
                WhenDone::kAtQuiet);
}

int ferry_atomic_fetch(ferry_context context, ferry_atomic_operation operation, ferry_place word,
                       int width, uint64_t operand, uint64_t compare, uint64_t* found) {
  return found == nullptr
             ? ferry::client::Fail(ErrorCode::kInvalidArgument,
                                   "ferry_atomic_fetch: the address for the result is null")
             : Atomic("ferry_atomic_fetch", context, operation, word, width, operand, compare,
                      found, WhenDone::kAtReturn);
}

int ferry_atomic_fetch_nbi(ferry_context context, ferry_atomic_operation operation,
                           ferry_place word, int width, uint64_t operand, uint64_t compare,
                           uint64_t* found) {
  return found == nullptr
             ? ferry::client::Fail(ErrorCode::kInvalidArgument,
                                   "ferry_atomic_fetch_nbi: the address for the result is null")
             : Atomic("ferry_atomic_fetch_nbi", context, operation, word, width, operand, compare,
                      found, WhenDone::kAtQuiet);
}

int ferry_fence(ferry_context context) {
  return With("ferry_fence", context, [](const Call& call) -> Status {
    call.one_sided().Fence(call.context);
    return {};
  });
}

int ferry_quiet(ferry_context context) {
  return With("ferry_quiet", context, [](const Call& call) -> Status {
    uint32_t rank = 0;
    const ErrorCode error = call.one_sided().Quiet(call.context, &rank);
    return call.Explained(error, rank);
  });
}

int ferry_quiet_rank(ferry_context context, int rank) {
  return With("ferry_quiet_rank", context, [&](const Call& call) -> Status {
    FERRY_RETURN_IF_ERROR(call.CheckRank(rank));
    const auto with = static_cast<uint32_t>(rank);
    return call.Explained(call.one_sided().QuietWith(call.context, with), with);
  });
}

}  // extern "C"

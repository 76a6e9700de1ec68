#include "shmem/rma/remote.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>
#include <string>

#include "shmem/base/copies.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"

namespace ferry::shmem {
namespace {

using client::OneSidedContext;
using client::WhenDone;

// The size of the buffer that strided puts are packed into: as much as one message carries.
constexpr size_t kPackBytes = 8192;

client::OneSided& Remote() { return *job.front_end->one_sided; }

[[noreturn]] void FailWith(const char* call, int pe, ErrorCode error) {
  // The daemon of a PE that is gone lets go of its memory first.
  AwaitNews([&] { return error != ErrorCode::kNotFound || StateOf(pe) != ErrorCode::kOk; });
  if (const ErrorCode state = StateOf(pe);
      error == ErrorCode::kNotFound && state != ErrorCode::kOk) {
    error = state;
  }
  GiveUp(call, error, StateText(pe, error));
}

void Check(const char* call, const PeAddress& target, ErrorCode error) {
  if (error != ErrorCode::kOk) [[unlikely]] {
    FailWith(call, target.remote_pe(), error);
  }
}

}  // namespace

// The operations that an OpenSHMEM context has begun with remote PEs: libferry's context, and the
// words of 4 bytes that it fetches. Libferry stores 8 bytes, for which there is no room at the
// place of the result.
class RemoteContext {
 public:
  RemoteContext() : context_(Remote().MakeContext()) {}
  ~RemoteContext() { Remote().FreeContext(context_); }
  RemoteContext(const RemoteContext&) = delete;
  RemoteContext& operator=(const RemoteContext&) = delete;

  OneSidedContext* get() const { return context_; }
  // Where the old value of a word of that PE goes first.
  uint64_t* AddWord(int pe, uint32_t* wanted) {
    std::lock_guard lock(mutex_);
    words_.push_back({pe, 0, wanted});
    return &words_.back().found;
  }
  ErrorCode Quiet(int* failed_pe) {
    std::list<Word> due = TakeWords([](const Word&) { return true; });
    uint32_t rank = 0;
    const ErrorCode error = Remote().Quiet(context_, &rank);
    *failed_pe = static_cast<int>(rank);
    Deliver(due);
    return error;
  }
  ErrorCode QuietWith(int pe) {
    std::list<Word> due = TakeWords([pe](const Word& word) { return word.pe == pe; });
    const ErrorCode error = Remote().QuietWith(context_, static_cast<uint32_t>(pe));
    Deliver(due);
    return error;
  }

 private:
  struct Word {
    int pe;
    uint64_t found;
    uint32_t* wanted;
  };

  // Those that other threads add meanwhile are for a later quiet.
  template <typename Which>
  std::list<Word> TakeWords(Which which) {
    std::list<Word> taken;
    std::lock_guard lock(mutex_);
    for (auto word = words_.begin(); word != words_.end();) {
      const auto next = std::next(word);
      if (which(*word)) {
        taken.splice(taken.end(), words_, word);
      }
      word = next;
    }
    return taken;
  }
  static void Deliver(const std::list<Word>& words) {
    for (const Word& word : words) {
      *word.wanted = static_cast<uint32_t>(word.found);
    }
  }

  OneSidedContext* const context_;
  std::mutex mutex_;
  std::list<Word> words_;  // libferry has their addresses
};

namespace {

RemoteContext* MakeRemote(Context* context) {
  static std::mutex& mutex = *new std::mutex();
  std::lock_guard lock(mutex);
  if (!context->has_remote()) {
    context->remote.store(new RemoteContext(), std::memory_order_release);  // Pairs with RemoteOf.
  }
  return context->remote.load(std::memory_order_relaxed);
}

RemoteContext& RemoteContextOf(Context* context) {
  RemoteContext* const made =
      context->remote.load(std::memory_order_acquire);  // Pairs with MakeRemote.
  return made != nullptr ? *made : *MakeRemote(context);
}

OneSidedContext* RemoteOf(Context* context) { return RemoteContextOf(context).get(); }

client::AtomicCall CallOf(const PeAddress& word, const RemoteAtomic& atomic) {
  return {.place = word.place(),
          .operation = atomic.op,
          .width = atomic.width,
          .operand = atomic.value,
          .compare = atomic.condition};
}

WhenDone WhenOf(Completion completion) {
  return completion == Completion::kBlocking ? WhenDone::kAtReturn : WhenDone::kAtQuiet;
}

bool IsOnePiece(ptrdiff_t stride_bytes, const Stride& stride) {
  return stride.blocks == 1 || static_cast<size_t>(stride_bytes) == stride.block_bytes;
}

// A call that may wait for a remote PE, for those who look at this one (client/api/calls.h).
class InCall {
 public:
  // `pe`: -1 stands for all.
  InCall(const char* call, int pe) : note_(call, pe), scope_(job.front_end->calls, &note_) {}

 private:
  struct Note : client::CallNote {
    Note(const char* function, int pe) : CallNote(&DescribeIt), function(function), pe(pe) {}

    const char* const function;
    const int pe;

    static void DescribeIt(const CallNote& note, shm::CallDescription* description) {
      const auto& call = static_cast<const Note&>(note);
      description->name = client::CallOf(call.function);
      if (call.pe >= 0) {
        description->peer = description->peer_in_group = call.pe;
      }
    }
  };

  Note note_;
  const client::CallScope scope_;
};

}  // namespace

// ---- Puts and gets ------------------------------------------------------------------------------

void PutRemote(const char* call, Context* context, const PeAddress& to, const void* source,
               size_t bytes, Completion completion, const client::Signal& signal) {
  const InCall in_call(call, to.remote_pe());
  Check(call, to,
        Remote().Put(RemoteOf(context), to.place(), source, bytes, signal, WhenOf(completion)));
}

void GetRemote(const char* call, Context* context, void* dest, const PeAddress& from, size_t bytes,
               Completion completion) {
  const InCall in_call(call, from.remote_pe());
  Check(call, from, Remote().Get(RemoteOf(context), dest, from.place(), bytes, WhenOf(completion)));
}

namespace {

// Into device memory, whose streams take one step for many blocks, and else one for each.
void GetStridedByHost(const char* call, Context* context, std::byte* to, const PeAddress& from,
                      const Stride& stride) {
  const size_t bytes = stride.block_bytes;
  const size_t most = std::min(kPassBytes / bytes, stride.blocks);
  const Staging pass = MakeStaging(call, most * bytes, true);
  for (size_t i = 0; i < stride.blocks; i += most) {
    const auto stride_bytes = static_cast<ptrdiff_t>(bytes);
    const size_t count = std::min(most, stride.blocks - i);
    GetStridedRemote(call, context, pass.get(),
                     from.At(static_cast<uint64_t>(stride.source_stride_bytes) * i),
                     {stride_bytes, stride.source_stride_bytes, bytes, count});
    CopyBlocksByStream(call, to + stride.dest_stride_bytes * static_cast<ptrdiff_t>(i), true,
                       pass.get(), false, {stride.dest_stride_bytes, stride_bytes, bytes, count});
  }
}

}  // namespace

// Blocks that lie side by side at the target are packed, as many as a message carries. Others are a
// put each, none of which waits for another; those of device memory are packed before, since its
// streams take one step for all of them, and else one for each.
void PutStridedRemote(const char* call, Context* context, const PeAddress& to, const void* source,
                      const Stride& stride) {
  const auto* from = static_cast<const std::byte*>(source);
  const size_t bytes = stride.block_bytes;
  const bool is_small = bytes != 0 && bytes <= kPackBytes / 2;
  const bool is_one_message = is_small && IsOnePiece(stride.dest_stride_bytes, stride);
  const bool is_by_stream = IsByStream(source);
  const size_t most = is_one_message || (is_small && is_by_stream) ? kPackBytes / bytes : 1;
  std::byte pack[kPackBytes];
  for (size_t i = 0; i < stride.blocks; i += most) {
    const size_t count = std::min(most, stride.blocks - i);
    const auto there = [&](size_t block) {
      return to.At(static_cast<uint64_t>(stride.dest_stride_bytes) * (i + block));
    };
    if (count == 1) {
      PutRemote(call, context, there(0), from, bytes, Completion::kBlocking);
      from += stride.source_stride_bytes;
      continue;
    }
    PackBlocks(call, pack, from, is_by_stream, stride.source_stride_bytes, bytes, count);
    from += stride.source_stride_bytes * static_cast<ptrdiff_t>(count);
    if (is_one_message) {
      PutRemote(call, context, there(0), pack, count * bytes, Completion::kBlocking);
      continue;
    }
    for (size_t block = 0; block < count; ++block) {
      PutRemote(call, context, there(block), pack + block * bytes, bytes, Completion::kBlocking);
    }
  }
}

// All blocks are under way at a time.
void GetStridedRemote(const char* call, Context* context, void* dest, const PeAddress& from,
                      const Stride& stride) {
  auto* const to = static_cast<std::byte*>(dest);
  const size_t bytes = stride.block_bytes;
  if (IsOnePiece(stride.dest_stride_bytes, stride) &&
      IsOnePiece(stride.source_stride_bytes, stride)) {
    GetRemote(call, context, to, from, bytes * stride.blocks, Completion::kBlocking);
    return;
  }
  if (bytes != 0 && bytes <= kPassBytes / 2 && IsByStream(dest)) {
    return GetStridedByHost(call, context, to, from, stride);
  }
  for (size_t i = 0; i < stride.blocks; ++i) {
    const PeAddress there = from.At(static_cast<uint64_t>(stride.source_stride_bytes) * i);
    GetRemote(call, context, to + stride.dest_stride_bytes * static_cast<ptrdiff_t>(i), there,
              bytes, Completion::kNonblocking);
  }
  QuietRemoteWith(call, context, from.remote_pe());
}

// ---- Atomics ------------------------------------------------------------------------------------

ErrorCode TryFetchRemote(Context* context, const PeAddress& word, const RemoteAtomic& atomic,
                         uint64_t* found) {
  return Remote().Atomic(RemoteOf(context), CallOf(word, atomic), found, WhenDone::kAtReturn);
}

uint64_t FetchRemote(const char* call, Context* context, const PeAddress& word,
                     const RemoteAtomic& atomic) {
  const InCall in_call(call, word.remote_pe());
  uint64_t found = 0;
  Check(call, word, TryFetchRemote(context, word, atomic, &found));
  return found;
}

void UpdateRemote(const char* call, Context* context, const PeAddress& word,
                  const RemoteAtomic& atomic) {
  Check(call, word,
        Remote().Atomic(RemoteOf(context), CallOf(word, atomic), nullptr, WhenDone::kAtQuiet));
}

void BeginFetchRemote(const char* call, Context* context, const PeAddress& word,
                      const RemoteAtomic& atomic, void* found) {
  uint64_t* const place =
      atomic.width == sizeof(uint64_t)
          ? static_cast<uint64_t*>(found)
          : RemoteContextOf(context).AddWord(word.remote_pe(), static_cast<uint32_t*>(found));
  Check(call, word,
        Remote().Atomic(RemoteOf(context), CallOf(word, atomic), place, WhenDone::kAtQuiet));
}

// ---- Ordering -----------------------------------------------------------------------------------

void FenceRemote(Context* context) { Remote().Fence(RemoteOf(context)); }

void QuietRemote(const char* call, Context* context) {
  const InCall in_call(call, -1);
  int failed_pe = 0;
  const ErrorCode error = RemoteContextOf(context).Quiet(&failed_pe);
  if (error != ErrorCode::kOk) [[unlikely]] {
    FailWith(call, failed_pe, error);
  }
}

void QuietRemoteWith(const char* call, Context* context, int world_pe) {
  const InCall in_call(call, world_pe);
  const ErrorCode error = RemoteContextOf(context).QuietWith(world_pe);
  if (error != ErrorCode::kOk) [[unlikely]] {
    FailWith(call, world_pe, error);
  }
}

void EndRemote(const char* call, Context* context) {
  if (context->has_remote()) {
    QuietRemote(call, context);
    delete context->remote.exchange(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace ferry::shmem

#include "mpi/p2p/send_buffer.h"

#include <sched.h>

#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "mpi/base/connection.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

// How long a send without room waits for others to leave the buffer.
constexpr uint64_t kMomentNs = 200'000'000;

struct Copy {
  std::unique_ptr<void, decltype(&std::free)> bytes{nullptr, &std::free};
  int64_t charge = 0;
  client::RequestHandle handle = 0;
};

struct Attached {
  void* buffer = nullptr;
  int64_t size_bytes = 0;
  int64_t used_bytes = 0;
  std::list<Copy> copies;

  bool automatic() const { return buffer == MPI_BUFFER_AUTOMATIC; }
};

struct Buffers {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Attached>> attached;  // by BufferOwner::key
  // Buffers of communicators and sessions that are gone, until their messages have left.
  std::vector<std::shared_ptr<Attached>> freed;
};
Buffers& buffers = *new Buffers();

// Under the lock. Null: nothing is attached.
std::shared_ptr<Attached> Find(BufferOwner owner) {
  const auto found = buffers.attached.find(owner.key());
  return found == buffers.attached.end() ? nullptr : found->second;
}

// Under the lock: the buffer that a message of this communicator takes. Null: there is none.
std::shared_ptr<Attached> FindFor(const Comm& comm) {
  std::shared_ptr<Attached> attached = Find(&comm);
  if (attached == nullptr && comm.session()) {
    attached = Find(comm.session().get());
  }
  return attached != nullptr ? attached : Find(nullptr);
}

// Under the lock: lets go of copies that have left.
bool Reclaim(Attached& attached) {
  std::erase_if(attached.copies, [&](Copy& copy) {
    client::Completion completion;
    if (!front_end->messages->IsComplete(copy.handle) ||
        !front_end->messages->Test(copy.handle, &completion)) {
      return false;
    }
    attached.used_bytes -= copy.charge;
    return true;
  });
  return attached.copies.empty();
}

// Under the lock.
void ReclaimFreed() {
  std::erase_if(buffers.freed,
                [](const std::shared_ptr<Attached>& left) { return Reclaim(*left); });
}

bool IsEmpty(Attached& attached) {
  std::lock_guard lock(buffers.mutex);
  return Reclaim(attached);
}

void Await(Attached& attached) {
  front_end->peers->WaitFor([](void* buffer) { return IsEmpty(*static_cast<Attached*>(buffer)); },
                            &attached);
}

// Done when all messages that were there at its beginning, or came since, have left.
class Flush : public Request {
 public:
  explicit Flush(std::shared_ptr<Attached> attached) : attached_(std::move(attached)) {}
  bool IsDone() override { return attached_ == nullptr || IsEmpty(*attached_); }
  Failure End(MPI_Status* status) override {
    SetEmptyStatus(status);
    return {};
  }

 private:
  const std::shared_ptr<Attached> attached_;
};

class PersistentBufferedSend : public Request {
 public:
  PersistentBufferedSend(Comm& comm, const void* buffer, int64_t count, const Datatype& type,
                         client::Message message, bool null)
      : comm_(Ref<Comm>::Share(&comm)),
        buffer_(const_cast<void*>(buffer)),
        count_(count),
        type_(Ref<const Datatype>::Share(&type)),
        message_(message),
        null_(null) {}

  bool IsDone() override { return true; }
  Failure End(MPI_Status* status) override {
    active_ = false;
    SetEmptyStatus(status);
    return {};
  }
  bool is_persistent() const override { return true; }
  bool is_active() const override { return active_; }
  Comm* comm() const override { return comm_.get(); }
  Failure Cancel() override { return {}; }  // too late, always
  Failure Start() override {
    if (active_) {
      return {MPI_ERR_REQUEST, "the persistent request is active; complete it first"};
    }
    Failure failure =
        null_ ? Failure() : BufferedSend(*comm_, Payload(buffer_, count_, *type_), message_);
    active_ = failure.ok();
    return failure;
  }

 private:
  const Ref<Comm> comm_;
  void* const buffer_;
  const int64_t count_;
  const Ref<const Datatype> type_;
  const client::Message message_;
  const bool null_;
  bool active_ = false;
};

Failure NoRoom(const Attached* attached, int64_t charge) {
  if (attached == nullptr) {
    return {MPI_ERR_BUFFER, "no buffer is attached; call MPI_Buffer_attach first"};
  }
  return {MPI_ERR_BUFFER, "the message takes " + std::to_string(charge) +
                              " bytes with MPI_BSEND_OVERHEAD, but of the attached buffer of " +
                              std::to_string(attached->size_bytes) +
                              " bytes, messages that have not left hold " +
                              std::to_string(attached->used_bytes)};
}

// Under the lock: lets go of copies that have left, and gives others that are in the way a moment
// to leave. Their receivers may already have them, and have said so by other messages, before word
// of that comes here.
bool AwaitRoom(Attached& attached, int64_t charge) {
  const auto has_room = [&] {
    (void)Reclaim(attached);
    return attached.automatic() || attached.size_bytes - attached.used_bytes >= charge;
  };
  bool found = has_room();
  const uint64_t end_ns = MonotonicNs() + kMomentNs;
  while (!found && charge <= attached.size_bytes && MonotonicNs() < end_ns &&
         front_end->poison() == ErrorCode::kOk) {
    if (!front_end->peers->Poll()) {
      sched_yield();
    }
    found = has_room();
  }
  return found;
}

}  // namespace

Failure AttachBuffer(BufferOwner owner, void* buffer, int64_t size_bytes) {
  std::lock_guard lock(buffers.mutex);
  if (size_bytes < 0) {
    return {MPI_ERR_ARG, "the size of the buffer is " + std::to_string(size_bytes)};
  }
  if (buffer == nullptr && size_bytes > 0) {
    return {MPI_ERR_BUFFER, "the buffer is null, but has " + std::to_string(size_bytes) + " bytes"};
  }
  if (Find(owner) != nullptr) {
    return {MPI_ERR_BUFFER, "a buffer is attached already; detach it first"};
  }
  ReclaimFreed();
  auto attached = std::make_shared<Attached>();
  attached->buffer = buffer;
  attached->size_bytes = size_bytes;
  buffers.attached[owner.key()] = std::move(attached);
  return {};
}

Failure DetachBuffer(BufferOwner owner, void** buffer, int64_t* size_bytes) {
  std::shared_ptr<Attached> attached;
  {
    std::lock_guard lock(buffers.mutex);
    attached = Find(owner);
    if (attached == nullptr) {
      return {MPI_ERR_BUFFER, "no buffer is attached"};
    }
    buffers.attached.erase(owner.key());
  }
  Await(*attached);
  *buffer = attached->buffer;
  *size_bytes = attached->automatic() ? 0 : attached->size_bytes;
  return {};
}

Failure FlushBuffer(BufferOwner owner) {
  std::shared_ptr<Attached> attached;
  {
    std::lock_guard lock(buffers.mutex);
    attached = Find(owner);
  }
  if (attached != nullptr) {
    Await(*attached);
  }
  return {};
}

void FreeBuffer(BufferOwner owner) {
  std::lock_guard lock(buffers.mutex);
  if (const auto found = buffers.attached.find(owner.key()); found != buffers.attached.end()) {
    buffers.freed.push_back(std::move(found->second));
    buffers.attached.erase(found);
  }
  ReclaimFreed();
}

void FlushAllBuffers() {
  std::vector<std::shared_ptr<Attached>> all;
  {
    std::lock_guard lock(buffers.mutex);
    all = buffers.freed;
    for (const auto& [key, attached] : buffers.attached) {
      all.push_back(attached);
    }
  }
  for (const std::shared_ptr<Attached>& attached : all) {
    Await(*attached);
  }
}

Ref<Request> BeginFlush(BufferOwner owner) {
  std::lock_guard lock(buffers.mutex);
  return MakeRef<Flush>(Find(owner));
}

Failure BufferedSend(Comm& comm, Payload payload, client::Message message) {
  std::lock_guard lock(buffers.mutex);
  const std::shared_ptr<Attached> attached = FindFor(comm);
  const int64_t charge = payload.size_bytes() + MPI_BSEND_OVERHEAD;
  if (attached == nullptr || !AwaitRoom(*attached, charge)) {
    return NoRoom(attached.get(), charge);
  }
  Copy copy;
  copy.charge = charge;
  if (payload.size_bytes() != 0) {
    copy.bytes.reset(std::malloc(static_cast<size_t>(payload.size_bytes())));
    if (copy.bytes == nullptr) {
      return {MPI_ERR_NO_MEM, "no memory for a copy of the message"};
    }
    FERRY_RETURN_FAILURE(payload.CopyOut(copy.bytes.get()));
  }
  message.buffer = copy.bytes.get();
  message.size_bytes = static_cast<uint64_t>(payload.size_bytes());
  if (const ErrorCode error = front_end->messages->StartSend(message, &copy.handle);
      error != ErrorCode::kOk) {
    return FailureOf(error);
  }
  attached->used_bytes += charge;
  attached->copies.push_back(std::move(copy));
  return {};
}

Ref<Request> MakeBufferedSend(Comm& comm, const void* buffer, int64_t count, const Datatype& type,
                              client::Message message, bool null) {
  return MakeRef<PersistentBufferedSend>(comm, buffer, count, type, message, null);
}

}  // namespace ferry::mpi

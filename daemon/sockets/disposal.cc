#include "daemon/sockets/disposal.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/passed_descriptors.h"
#include "common/thread.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMaxUnaskedOfUser = 16;
constexpr size_t kMaxUnaskedInAll = 1024;
constexpr uint32_t kMaxClosers = 64;
constexpr uint64_t kPatienceNs = 100'000'000;
constexpr std::chrono::milliseconds kRetry{50};

// Descriptors that are on their way to a thread that exits with them. It keeps them until the
// thread that handed them over has closed its own: the last one to close may have to wait.
struct Burial {
  std::atomic<bool> closed = false;
};
using BurialPtr = std::shared_ptr<Burial>;

// The life of a thread that exits with what it takes out of `receiver`. `mutex`: of whoever sends.
void TakeAlong(int receiver, std::mutex& mutex) {
  // All of the undertaker's table, which is all but empty, but no longer the same one.
  const bool alone = OwnDescriptors();
  BurialPtr* burial = nullptr;
  std::vector<UniqueFd> fds;
  const ssize_t size = ReceiveWithDescriptors(
      receiver, std::as_writable_bytes(std::span(&burial, 1)), &fds, MSG_DONTWAIT);
  if (size == sizeof(burial)) {
    { const std::lock_guard sent(mutex); }  // a socket alone orders nothing for the language
    (*burial)->closed.wait(false);          // Pairs with Bury.
    delete burial;
  }
  for (UniqueFd& fd : fds) {
    if (alone) {
      (void)fd.Release();  // closed by our exit
    }
  }
}

}  // namespace

PassedKind KindOf(int fd) {
  if (const int seals = fcntl(fd, F_GET_SEALS); seals >= 0) {
    return (seals & F_SEAL_SHRINK) != 0 ? PassedKind::kSealedMemory : PassedKind::kMemory;
  }
  struct statx info {};
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &info) != 0) {
    return PassedKind::kOther;
  }
  const auto type = info.stx_mode & S_IFMT;
  return type == 0 || type == S_IFCHR ? PassedKind::kDevice : PassedKind::kOther;
}

Disposal& Disposal::Instance() {
  static auto* const instance = new Disposal();
  return *instance;
}

Disposal::Disposal() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    spdlog::error("descriptors that are closed may linger: socketpair: {}", strerror(errno));
    return;
  }
  handover_.Reset(ends[0]);
  receiver_.Reset(ends[1]);
  std::unique_lock lock(mutex_);
  StatusOr<std::thread> thread =
      StartThread("ferry-disposal", "that closes descriptors", [this] { Undertake(); });
  if (thread.ok()) {
    thread->detach();
    undertake_.wait(lock, [this] { return is_undertaker_settled_; });
  } else {
    spdlog::error("descriptors that are closed may linger: {}", thread.status().message());
  }
  receiver_.Reset();  // the undertaker has its own; without one there is no receiver
}

// Starts the threads that exit. They inherit its table of descriptors, in which there is nothing
// but the end that they receive from.
void Disposal::Undertake() {
  const int receiver = receiver_.get();
  const bool apart = OwnDescriptors(receiver);
  std::unique_lock lock(mutex_);
  is_undertaker_settled_ = true;
  undertake_.notify_all();
  if (!apart) {
    spdlog::error(
        "descriptors that are closed may linger: neither close_range (Linux 5.9) nor unshare is "
        "allowed");
    return;
  }
  for (;;) {
    undertake_.wait(lock, [this] { return to_undertake_ != 0; });
    lock.unlock();
    StatusOr<std::thread> thread = StartThread("ferry-disposal", "that closes descriptors",
                                               [this, receiver] { TakeAlong(receiver, mutex_); });
    if (thread.ok()) {
      thread->detach();
    }
    lock.lock();
    if (thread.ok()) {
      --to_undertake_;
    } else {
      undertake_.wait_for(lock, kRetry);  // the system starts none; they wait in the socket
    }
  }
}

void Disposal::CloseSocket(UniqueFd socket) {
  if (!socket.valid()) {
    return;
  }
  shutdown(socket.get(), SHUT_RDWR);
  BurySoon({std::move(socket)});
}

void Disposal::Close(UniqueFd fd) {
  if (fd.valid() && KindOf(fd.get()) != PassedKind::kSealedMemory) {
    BurySoon({std::move(fd)});
  }
}

void Disposal::Release(shm::Mapping mapping, UniqueFd fd) {
  if (mapping.valid()) {
    BurySoon({std::move(fd), std::move(mapping)});
  } else {
    Close(std::move(fd));
  }
}

void Disposal::CloseUnasked(uid_t sender, std::vector<UniqueFd> fds) {
  std::erase_if(fds, [](const UniqueFd& fd) {
    return !fd.valid() || KindOf(fd.get()) == PassedKind::kSealedMemory;
  });
  if (fds.empty()) {
    return;
  }
  const auto unasked = std::make_shared<std::vector<UniqueFd>>(std::move(fds));
  const size_t count = unasked->size();
  {
    const std::lock_guard lock(mutex_);
    unasked_[sender] += count;
    unasked_in_all_ += count;
  }
  // One for each packet, at once: what waits here would wait in every child that is forked, too.
  StatusOr<std::thread> thread =
      StartThread("ferry-disposal", "that closes descriptors", [this, unasked, count, sender] {
        Bury(*unasked);
        const std::lock_guard lock(mutex_);
        unasked_in_all_ -= count;
        const auto user = unasked_.find(sender);
        if ((user->second -= count) == 0) {
          unasked_.erase(user);
        }
      });
  if (thread.ok()) {
    thread->detach();
    return;
  }
  // They stay counted: a user that uses up the process's threads passes no more.
  for (UniqueFd& fd : *unasked) {
    BurySoon({std::move(fd)});
  }
}

bool Disposal::MayPass(uid_t sender) const {
  const std::lock_guard lock(mutex_);
  const auto user = unasked_.find(sender);
  return user == unasked_.end() ||
         (user->second < kMaxUnaskedOfUser && unasked_in_all_ < kMaxUnaskedInAll);
}

void Disposal::BurySoon(Ended ended) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(ended));
  if (idle_closers_ != 0) {
    bury_.notify_one();
    return;
  }
  const uint64_t now_ns = MonotonicNs();
  if (closers_ != 0 && (closers_ >= kMaxClosers || now_ns - taken_ns_ < kPatienceNs)) {
    return;  // one of them will come to it
  }
  StatusOr<std::thread> thread =
      StartThread("ferry-disposal", "that closes descriptors", [this] { BuryAll(); });
  if (thread.ok()) {
    thread->detach();
    ++closers_;
    taken_ns_ = now_ns;
  }
}

void Disposal::BuryAll() {
  std::vector<Ended> some;
  std::vector<UniqueFd> fds;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_closers_;
    bury_.wait(lock, [this] { return !queue_.empty(); });
    --idle_closers_;
    const size_t count = std::min(queue_.size(), kMaxPassedDescriptors);
    const auto end = queue_.begin() + static_cast<ptrdiff_t>(count);
    std::move(queue_.begin(), end, std::back_inserter(some));
    queue_.erase(queue_.begin(), end);
    taken_ns_ = MonotonicNs();
    lock.unlock();
    // While the file holds the pages they need not be given back under the lock of our address
    // space, for which every thread that maps something would wait.
    for (Ended& ended : some) {
      ended.mapping = {};
      fds.push_back(std::move(ended.fd));
    }
    some.clear();
    Bury(fds);
    fds.clear();
    lock.lock();
  }
}

// Blocks for as long as the files' servers like.
void Disposal::Bury(std::span<UniqueFd> fds) {
  for (size_t first = 0; first < fds.size(); first += kMaxPassedDescriptors) {
    const auto some = fds.subspan(first, std::min(fds.size() - first, kMaxPassedDescriptors));
    std::array<int, kMaxPassedDescriptors> numbers{};
    std::transform(some.begin(), some.end(), numbers.begin(),
                   [](const UniqueFd& fd) { return fd.get(); });
    const auto burial = std::make_shared<Burial>();
    auto* const handed_over = new BurialPtr(burial);
    {
      const std::lock_guard lock(mutex_);
      if (handover_.valid() &&
          SendWithDescriptors(handover_.get(), std::as_bytes(std::span(&handed_over, 1)),
                              std::span(numbers).first(some.size()), MSG_DONTWAIT) > 0) {
        ++to_undertake_;
        undertake_.notify_one();
      } else {
        delete handed_over;
      }
    }
    for (UniqueFd& fd : some) {
      fd.Reset();
    }
    burial->closed.store(true);  // Pairs with TakeAlong.
    burial->closed.notify_all();
  }
}

}  // namespace ferry::daemon

#include "daemon/worker/group_lookup.h"

#include <pthread.h>

#include <utility>

namespace ferry::daemon {

GroupLookup::GroupLookup(Source source) : source_(std::move(source)), thread_([this] { Loop(); }) {
  pthread_setname_np(thread_.native_handle(), "ferry-groups");
}

GroupLookup::~GroupLookup() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void GroupLookup::Ask(const WorkerUser& user, Done done) {
  {
    std::lock_guard lock(mutex_);
    questions_.push_back({user, std::move(done)});
  }
  asked_.notify_one();
}

void GroupLookup::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stop_ || !questions_.empty(); });
    if (stop_) {
      return;
    }
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    question.done(source_(question.user));
    lock.lock();
  }
}

}  // namespace ferry::daemon

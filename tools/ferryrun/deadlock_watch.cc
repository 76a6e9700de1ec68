#include "tools/ferryrun/deadlock_watch.h"

#include <sys/eventfd.h>

#include <utility>

#include "common/thread.h"

namespace ferry::tools {

std::unique_ptr<DeadlockWatch> DeadlockWatch::Start(std::span<const ServingDaemon> daemons,
                                                    std::string job_id, uint64_t interval_s) {
  std::vector<const LauncherClient*> clients;
  for (const ServingDaemon& daemon : daemons) {
    clients.push_back(&daemon.client);
  }
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (clients.empty() || !event.valid() || interval_s == 0) {
    return nullptr;
  }
  std::unique_ptr<DeadlockWatch> watch(new DeadlockWatch(
      std::move(clients), std::move(job_id), std::chrono::seconds(interval_s), std::move(event)));
  StatusOr<std::thread> thread =
      StartThread("ferry-hangs", "that looks for deadlocks", [raw = watch.get()] { raw->Run(); });
  if (!thread.ok()) {
    return nullptr;
  }
  watch->thread_ = std::move(*thread);
  return watch;
}

DeadlockWatch::DeadlockWatch(std::vector<const LauncherClient*> clients, std::string job_id,
                             std::chrono::seconds interval, UniqueFd event)
    : clients_(std::move(clients)),
      job_id_(std::move(job_id)),
      interval_(interval),
      event_(std::move(event)) {}

DeadlockWatch::~DeadlockWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (question_ != nullptr) {
      question_->TryCancel();
    }
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::vector<std::string> DeadlockWatch::Take() {
  eventfd_t ignored = 0;
  (void)eventfd_read(event_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(sentences_, {});
}

bool DeadlockWatch::Pause() {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, interval_, [this] { return stop_; });
}

void DeadlockWatch::Run() {
  while (Pause()) {
    for (const LauncherClient* client : clients_) {
      Ask(*client);
    }
  }
}

// Says nothing of a daemon that does not answer: others do.
void DeadlockWatch::Ask(const LauncherClient& client) {
  control::WhyRequest request;
  request.set_job_id(job_id_);
  request.set_all_ranks(true);
  request.set_deadlocks_only(true);
  control::WhyReply reply;
  grpc::ClientContext context;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) {
      return;
    }
    question_ = &context;
  }
  const Status status = client.Call(&LauncherClient::Stub::Why, request, &reply, &context);
  {
    const std::lock_guard lock(mutex_);
    question_ = nullptr;
  }
  if (status.ok()) {
    for (const control::RankWait& wait : reply.ranks()) {
      Note(wait);
    }
  }
}

void DeadlockWatch::Note(const control::RankWait& wait) {
  const std::set<uint32_t> circle(wait.chain().begin(), wait.chain().end());
  if (!wait.deadlock() || !told_.insert(circle).second) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    sentences_.push_back(wait.verdict() + "; `ferryctl why " + job_id_ + "." +
                         std::to_string(wait.rank()) + "` tells more");
  }
  (void)eventfd_write(event_.get(), 1);
}

}  // namespace ferry::tools

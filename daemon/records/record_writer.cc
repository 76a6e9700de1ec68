#include "daemon/records/record_writer.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "common/counted.h"
#include "common/log.h"
#include "common/thread.h"
#include "daemon/metrics/user_names.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMostWaiting = 1024;
constexpr std::chrono::seconds kLastWrites(2);

}  // namespace

struct RecordWriter::State {
  explicit State(RecordWriter::Write write) : write(std::move(write)) {}

  void Run();
  void WriteOne(const EndedJob& job);

  const RecordWriter::Write write;  // these only on the thread
  UserNames users;
  bool has_told_of_rights = false;
  RateLimiter limiter{1, 60'000'000'000};

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<EndedJob> waiting;
  bool is_busy = false;
  bool stop = false;
};

void RecordWriter::State::WriteOne(const EndedJob& job) {
  const Status status =
      write(job.uid, RecordFileName(job), "{" + RecordMembers(job, users.Find(job.uid)) + "}\n");
  if (status.code() == ErrorCode::kUnsupported) {
    if (!std::exchange(has_told_of_rights, true)) {
      spdlog::warn("job_records: {}", status.message());
    }
  } else if (!status.ok()) {
    LogLimited(limiter, spdlog::level::err, "the record of job {} is lost: {}", job.id,
               status.message());
  }
}

void RecordWriter::State::Run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return stop || !waiting.empty(); });
    if (waiting.empty()) {
      return;
    }
    const EndedJob job = std::move(waiting.front());
    waiting.pop_front();
    is_busy = true;
    lock.unlock();
    WriteOne(job);
    lock.lock();
    is_busy = false;
    changed.notify_all();
  }
}

RecordWriter::RecordWriter(Write write) : state_(std::make_shared<State>(std::move(write))) {
  MakeThread("ferry-records", [state = state_] { state->Run(); }).detach();
}

RecordWriter::~RecordWriter() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  const auto is_done = [this] { return state_->waiting.empty() && !state_->is_busy; };
  if (!state_->changed.wait_for(lock, kLastWrites, is_done)) {
    spdlog::error("job_records: {} could not be written in time",
                  Counted(state_->waiting.size() + (state_->is_busy ? 1 : 0), "record"));
    state_->waiting.clear();
  }
}

void RecordWriter::Put(EndedJob job) {
  std::unique_lock lock(state_->mutex);
  if (state_->waiting.size() >= kMostWaiting) {
    lock.unlock();
    static RateLimiter limiter(1, 60'000'000'000);
    return LogLimited(limiter, spdlog::level::err,
                      "the record of job {} is lost: the folder of job_records is too slow",
                      job.id);
  }
  state_->waiting.push_back(std::move(job));
  state_->changed.notify_all();
}

}  // namespace ferry::daemon

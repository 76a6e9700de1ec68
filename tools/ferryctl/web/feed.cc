#include "tools/ferryctl/web/feed.h"

#include <algorithm>
#include <utility>

#include "common/thread.h"
#include "tools/ferryctl/web/picture.h"

namespace ferry::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRestPerLook = 20;  // it rests for so many times as long as a look took

}  // namespace

Feed::Feed(Inquiry inquiry, EventLog* log, std::function<void()> news, FeedPace pace)
    : inquiry_(std::move(inquiry)), log_(*log), news_(std::move(news)), pace_(pace) {
  thread_ = MakeThread("ferry-look", [this] { Run(); });
}

Feed::~Feed() { Stop(); }

void Feed::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Feed::SetReaders(size_t readers) {
  {
    const std::lock_guard lock(mutex_);
    if (readers > 0 && readers_ == 0 && Clock::now() - last_ > pace_.longest) {
      log_.Clear();
      begins_ = true;
    }
    readers_ = readers;
  }
  wake_.notify_all();
}

bool Feed::Ask(RankQuestion question, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_ || questions_.size() >= kMostQuestions) {
      return false;
    }
    questions_.emplace_back(std::move(question), std::move(done));
  }
  wake_.notify_all();
  return true;
}

void Feed::Answer(std::unique_lock<std::mutex>* lock) {
  auto [question, done] = std::move(questions_.front());
  questions_.pop_front();
  lock->unlock();
  done(inquiry_.why(question));
  lock->lock();
}

void Feed::Run() {
  Picture picture;
  std::unique_lock lock(mutex_);
  Clock::time_point next;  // look
  while (true) {
    if (readers_ == 0) {
      wake_.wait(lock, [this] { return ends_ || readers_ > 0 || !questions_.empty(); });
    } else {
      wake_.wait_until(lock, next, [this] { return ends_ || begins_ || !questions_.empty(); });
    }
    if (ends_) {
      return;
    }
    if (!questions_.empty()) {
      Answer(&lock);
      continue;
    }
    if (readers_ == 0 || (!begins_ && Clock::now() < next)) {
      continue;
    }
    if (std::exchange(begins_, false)) {
      picture = Picture();
    }
    lock.unlock();
    const Clock::time_point start = Clock::now();
    const Look look = inquiry_.look();
    const auto took = Clock::now() - start;
    nlohmann::json state = picture.Draw(look);
    lock.lock();
    if (!begins_) {  // else readers came who want nothing of before
      log_.Add(std::move(state), look.unix_ms);
    }
    last_ = Clock::now();
    lock.unlock();
    news_();
    lock.lock();
    const auto rest =
        std::clamp<Clock::duration>(took * kRestPerLook, pace_.shortest, pace_.longest);
    next = start + rest;
  }
}

}  // namespace ferry::tools

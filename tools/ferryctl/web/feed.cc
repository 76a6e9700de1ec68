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

Feed::Feed(std::function<Look()> look, EventLog* log, std::function<void()> news, FeedPace pace)
    : look_(std::move(look)), log_(*log), news_(std::move(news)), pace_(pace) {
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

void Feed::Run() {
  Picture picture;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ends_ || readers_ > 0; });
    if (ends_) {
      return;
    }
    if (std::exchange(begins_, false)) {
      picture = Picture();
    }
    lock.unlock();
    const Clock::time_point start = Clock::now();
    const Look look = look_();
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
    wake_.wait_until(lock, start + rest, [this] { return ends_ || begins_; });
  }
}

}  // namespace ferry::tools

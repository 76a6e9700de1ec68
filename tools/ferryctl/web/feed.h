// Feed: looks at the daemons again and again while the page is read, and only then.
//
// Between two looks it waits for a second, or for longer if looks take long: it keeps the daemons
// busy for at most a twentieth of the time. One thread of its own calls `look`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>

#include "tools/ferryctl/web/event_log.h"
#include "tools/ferryctl/web/look.h"

namespace ferry::tools {

struct FeedPace {
  std::chrono::milliseconds shortest{1000};  // from one look to the next
  std::chrono::milliseconds longest{10'000};
};

class Feed {
 public:
  // `look` may block; `news` is called after each look, on the feed's thread. `log` outlives it.
  Feed(std::function<Look()> look, EventLog* log, std::function<void()> news, FeedPace pace = {});
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Ends the looking, and waits for the look that is under way. SetReaders does nothing from then
  // on.
  void Stop();

  // Tells how many read now. Any thread; does not block. If none has read for longer than the
  // longest pause, the log begins anew.
  void SetReaders(size_t readers);

 private:
  void Run();

  const std::function<Look()> look_;
  EventLog& log_;
  const std::function<void()> news_;
  const FeedPace pace_;
  std::mutex mutex_;
  std::condition_variable wake_;
  size_t readers_ = 0;
  bool ends_ = false;
  bool begins_ = true;  // anew: no rates since what was before
  std::chrono::steady_clock::time_point last_;
  std::thread thread_;
};

}  // namespace ferry::tools

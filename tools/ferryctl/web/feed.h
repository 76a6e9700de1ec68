// Feed: looks at the daemons again and again while the page is read, and only then.
//
// Between two looks it waits for a second, or for longer if looks take long: it keeps the daemons
// busy for at most a twentieth of the time, or for one look in ten seconds. Where a reader wants to
// know more of a rank, it asks between two looks. One thread of its own calls `look` and `why`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tools/ferryctl/web/event_log.h"
#include "tools/ferryctl/web/look.h"

namespace ferry::tools {

struct FeedPace {
  std::chrono::milliseconds shortest{1000};  // from one look to the next
  std::chrono::milliseconds longest{10'000};
};

// The questions that the page puts to the daemons. Each may block.
struct Inquiry {
  std::function<Look()> look;
  std::function<std::string(const RankQuestion&)> why;  // the answer of `ferryctl why`, for people
};

class Feed {
 public:
  static constexpr size_t kMostQuestions = 8;  // that wait for their turn

  // `news` is called after each look, on the feed's thread. `log` outlives it.
  Feed(Inquiry inquiry, EventLog* log, std::function<void()> news, FeedPace pace = {});
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Ends the looking, and waits for the look that is under way. SetReaders does nothing from then
  // on.
  void Stop();

  // Tells how many read now. Any thread; does not block. If none has read for longer than the
  // longest pause, the log begins anew.
  void SetReaders(size_t readers);

  // Asks about a rank, and calls `done` with the answer, on the feed's thread. False: too many
  // questions wait. Any thread; does not block. Questions that wait when it stops have no answer.
  using Done = std::function<void(std::string answer)>;
  bool Ask(RankQuestion question, Done done);

 private:
  void Run();
  void Answer(std::unique_lock<std::mutex>* lock);

  const Inquiry inquiry_;
  EventLog& log_;
  const std::function<void()> news_;
  const FeedPace pace_;
  std::mutex mutex_;
  std::condition_variable wake_;
  size_t readers_ = 0;
  std::deque<std::pair<RankQuestion, Done>> questions_;
  bool ends_ = false;
  bool begins_ = true;  // anew: no rates since what was before
  std::chrono::steady_clock::time_point last_;
  std::thread thread_;
};

}  // namespace ferry::tools

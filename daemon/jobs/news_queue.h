// News for another node of a job, which must arrive there in order: while some are on their way,
// the others wait. News whose answer got lost are sent again, so hearing them twice must do no
// harm.
//
// Thread: the control thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::daemon {

template <typename News>
class NewsQueue {
 public:
  // The limits of one request, and so of an answer that refuses each of its news in words: half of
  // what is read of either (kMostMessageBytes of http2_guard.h).
  static constexpr size_t kMostAtATime = 1024;
  static constexpr size_t kMostBytesAtATime = 256 << 10;

  // Names the news on their way.
  using Batch = uint64_t;

  void Push(News news) { news_.push_back(std::move(news)); }
  // Forgets all news, also those on their way: their answer is ignored when it comes.
  void Clear() {
    news_.clear();
    under_way_ = 0;
    ++batch_;
  }
  size_t size() const { return news_.size(); }

  // Hands out the next news through `add(news)`: at least one, and as many as the limits above
  // allow. Nothing while some are on their way, or if there are none.
  template <typename Add>
  std::optional<Batch> Begin(Add&& add) {
    if (under_way_ != 0 || news_.empty()) {
      return std::nullopt;
    }
    size_t bytes = 0;
    while (under_way_ < std::min(news_.size(), kMostAtATime)) {
      const News& news = news_[under_way_];
      bytes += news.ByteSizeLong();
      if (under_way_ > 0 && bytes > kMostBytesAtATime) {
        break;
      }
      add(news);
      ++under_way_;
    }
    return ++batch_;
  }
  // The batch could not be sent: the next Begin hands it out once more.
  void Retry(Batch batch) {
    if (batch == batch_) {
      under_way_ = 0;
    }
  }
  // The batch has been answered: takes its news out.
  std::vector<News> Finish(Batch batch) {
    std::vector<News> told;
    if (batch == batch_) {
      const auto end = news_.begin() + static_cast<ptrdiff_t>(under_way_);
      told.assign(std::make_move_iterator(news_.begin()), std::make_move_iterator(end));
      news_.erase(news_.begin(), end);
      under_way_ = 0;
    }
    return told;
  }

 private:
  std::deque<News> news_;
  size_t under_way_ = 0;  // of the first ones
  Batch batch_ = 0;
};

}  // namespace ferry::daemon

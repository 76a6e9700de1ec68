// Two ranks exchange numbered rounds over a link that is cut, and meet again after it.
//
// Each round is a small message with its number and a large one. A rank that is told of a cut
// (FERRY_ERR_LINK_DOWN) prints "rank R: cut at NS"; the first round after that "rank R: back at
// NS"; any other error ends it. The leading rank sends its round, the other one follows.
#pragma once

#include <cstddef>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace ferry::ranks {

// When FERRY_ERR_TIMEOUT, too, is only a reason to try again.
enum class Timeouts { kEnd, kEndureAfterCut, kEndure };

class Reunion {
 public:
  // `words`: room for the large message, of `count` words.
  Reunion(int partner, long* words, size_t count, Timeouts timeouts)
      : partner_(partner), words_(words), count_(count), timeouts_(timeouts) {}

  bool cut() const { return cut_; }

  // One round; false if it failed. `last`: the other one stops after it.
  bool Lead(long round, bool last) {
    const Small out{round, last ? 1 : 0};
    Small in{};
    for (size_t i = 0; i < count_; ++i) {
      words_[i] = WordOf(round, i);
    }
    if (!Passed(ferry_send(&out, sizeof(out), partner_, kTag)) ||
        !Passed(ferry_send(words_, count_ * sizeof(long), partner_, kTag))) {
      return false;
    }
    do {  // an answer from before the cut may still come
      if (!Passed(ferry_recv(&in, sizeof(in), partner_, kTag, nullptr))) {
        return false;
      }
    } while (in.round < round);
    CHECK_EQ(in.round, round);
    IsBack();
    return true;
  }

  // A message of the other size means that one was lost: it waits for the next round.
  bool Follow(long* round, bool* last) {
    ferry_status status{};
    Small in{};
    do {
      if (!Passed(ferry_recv(words_, count_ * sizeof(long), partner_, kTag, &status))) {
        return false;
      }
    } while (status.size_bytes != sizeof(in));
    in = *reinterpret_cast<Small*>(words_);
    if (!Passed(ferry_recv(words_, count_ * sizeof(long), partner_, kTag, &status))) {
      return false;
    }
    CHECK_EQ(status.size_bytes, count_ * sizeof(long));
    for (size_t i = 0; i < count_; ++i) {
      CHECK_EQ(words_[i], WordOf(in.round, i));
    }
    if (!Passed(ferry_send(&in, sizeof(in), partner_, kTag))) {
      return false;
    }
    *round = in.round;
    *last = in.last != 0;
    IsBack();
    return true;
  }

 private:
  static constexpr int kTag = 1;
  static constexpr long kStride = 1'000'000'007;  // between the words of rounds

  struct Small {
    long round;
    long last;
  };

  static long WordOf(long round, size_t place) {
    return round * kStride + static_cast<long>(place);
  }
  bool Endures(int code) const {
    return code == FERRY_ERR_LINK_DOWN ||
           (code == FERRY_ERR_TIMEOUT &&
            (timeouts_ == Timeouts::kEndure || (timeouts_ == Timeouts::kEndureAfterCut && cut_)));
  }
  // False if the link is down, for the first time or still.
  bool Passed(int code) {
    if (code == FERRY_SUCCESS) {
      return true;
    }
    if (!Endures(code)) {
      StopOnError(code);
    }
    if (!cut_) {
      cut_ = true;
      Say("cut at", static_cast<long>(NowNs()));
    }
    return false;
  }
  void IsBack() {
    if (cut_) {
      cut_ = false;
      Say("back at", static_cast<long>(NowNs()));
    }
  }

  const int partner_;
  long* const words_;
  const size_t count_;
  const Timeouts timeouts_;
  bool cut_ = false;
};

}  // namespace ferry::ranks

#include "client/bootstrap/meeting_watch.h"

#include <cstdio>
#include <utility>

#include "common/clock.h"
#include "common/library_words.h"
#include "common/thread.h"

namespace ferry::client {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

}  // namespace

MeetingWatch::MeetingWatch(const char* call, uint32_t rank, uint64_t patience_ms)
    : call_(call),
      rank_(rank),
      begin_ns_(MonotonicNs()),
      patience_ns_(patience_ms * kNsPerMs),
      due_ns_(patience_ms == 0 ? UINT64_MAX : begin_ns_ + patience_ns_) {}

MeetingWatch::~MeetingWatch() {
  if (asking_.joinable()) {
    asking_.join();
  }
}

bool MeetingWatch::IsDue() const { return MonotonicNs() >= due_ns_; }

void MeetingWatch::Tell(const std::string& words) { Say(Postpone(), words); }

void MeetingWatch::TellAnswer(std::function<StatusOr<std::string>()> ask) {
  std::string begin = Postpone();
  if (asking_.joinable()) {
    asking_.join();  // it has long ended
  }
  StatusOr<std::thread> thread =
      StartThread("ferry-why", "that asks what this rank waits for",
                  [this, begin = std::move(begin), ask = std::move(ask)] {
                    if (const StatusOr<std::string> answer = ask(); answer.ok()) {
                      Say(begin, *answer);
                    }
                  });
  if (thread.ok()) {
    asking_ = std::move(*thread);
  }
}

// Returns how a warning begins ("CALL has waited for N s"), and puts the next one off.
std::string MeetingWatch::Postpone() {
  const uint64_t now_ns = MonotonicNs();
  patience_ns_ *= 2;
  due_ns_ = now_ns + patience_ns_;
  // Whole seconds if there are any, so that ranks that came together use the same words.
  const double seconds = static_cast<double>(now_ns - begin_ns_) * 1e-9;
  char number[32];
  std::snprintf(number, sizeof(number), seconds < 1 ? "%.1g" : "%.0f", seconds);
  return std::string(call_) + " has waited for " + number + " s";
}

void MeetingWatch::Say(const std::string& begin, const std::string& words) const {
  SayToUser(static_cast<int>(rank_), begin + words);
}

}  // namespace ferry::client

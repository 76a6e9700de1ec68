// EventLog: the states of the last minute, as the events that the page's readers are sent.
//
// A reader gets the state of a minute ago ("snapshot") and then what has changed at each look
// ("change", a JSON Merge Patch, RFC 7386): so it can draw that minute. All readers share these
// texts, and a reader that is slow costs no memory: one that has fallen behind the log's beginning
// gets a snapshot again. Texts are server-sent events, as the HTML standard has them:
// https://html.spec.whatwg.org/multipage/server-sent-events.html
//
// Any thread; nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace ferry::tools {

// Returns the merge patch that makes `to` of `from`. Both are objects without null in them.
nlohmann::json ChangeBetween(const nlohmann::json& from, const nlohmann::json& to);

class EventLog {
 public:
  static constexpr uint64_t kKeptMs = 60'000;
  static constexpr size_t kMostBytes = 4 << 20;  // of the changes that are kept

  // Appends what has changed; older changes give way.
  void Add(nlohmann::json state, uint64_t unix_ms);
  // Forgets all: what comes next is no continuation.
  void Clear();

  struct Event {
    std::shared_ptr<const std::string> text;
    uint64_t number = 0;
  };
  // Returns the event for a reader that has had the one of that number (0: none). Nothing: it has
  // had all.
  std::optional<Event> After(uint64_t number);

  // Returns the bytes of the changes that are kept.
  size_t bytes() const;

 private:
  struct Change {
    uint64_t unix_ms;
    nlohmann::json change;
    std::shared_ptr<const std::string> text;
  };
  void DropFirst();

  mutable std::mutex mutex_;
  nlohmann::json state_;  // newest; null: none
  nlohmann::json past_;   // before the first of `changes_`
  uint64_t past_ms_ = 0;
  uint64_t past_number_ = 0;
  std::shared_ptr<const std::string> past_text_;  // made when a reader wants it
  std::deque<Change> changes_;                    // numbers past_number_ + 1, ...
  size_t bytes_ = 0;
};

}  // namespace ferry::tools

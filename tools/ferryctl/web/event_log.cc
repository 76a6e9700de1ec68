#include "tools/ferryctl/web/event_log.h"

#include <utility>

namespace ferry::tools {
namespace {

using nlohmann::json;

// JSON text has no line ends, so it is one line of data. Names may hold any bytes; those that are
// not UTF-8 are replaced.
std::shared_ptr<const std::string> EventText(const char* name, const json& data) {
  return std::make_shared<const std::string>(
      std::string("event: ") + name +
      "\ndata: " + data.dump(-1, ' ', false, json::error_handler_t::replace) + "\n\n");
}

}  // namespace

json ChangeBetween(const json& from, const json& to) {
  json change = json::object();
  for (const auto& [key, value] : to.items()) {
    const auto old = from.find(key);
    if (old == from.end()) {
      change[key] = value;
    } else if (*old != value) {
      change[key] = old->is_object() && value.is_object() ? ChangeBetween(*old, value) : value;
    }
  }
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) {
      change[key] = nullptr;
    }
  }
  return change;
}

void EventLog::Add(json state, uint64_t unix_ms) {
  const std::lock_guard lock(mutex_);
  if (state_.is_null()) {
    past_ = state;
    past_ms_ = unix_ms;
    ++past_number_;
    past_text_.reset();
  } else {
    json change = ChangeBetween(state_, state);
    auto text = EventText("change", {{"t", unix_ms}, {"change", change}});
    bytes_ += text->size();
    changes_.push_back({unix_ms, std::move(change), std::move(text)});
  }
  state_ = std::move(state);
  while (!changes_.empty() && (past_ms_ + kKeptMs < unix_ms || bytes_ > kMostBytes)) {
    DropFirst();
  }
}

void EventLog::DropFirst() {
  Change& first = changes_.front();
  past_.merge_patch(first.change);
  past_ms_ = first.unix_ms;
  ++past_number_;
  past_text_.reset();
  bytes_ -= first.text->size();
  changes_.pop_front();
}

void EventLog::Clear() {
  const std::lock_guard lock(mutex_);
  past_number_ += changes_.size();
  changes_.clear();
  bytes_ = 0;
  state_ = nullptr;
  past_ = nullptr;
  past_text_.reset();
}

std::optional<EventLog::Event> EventLog::After(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (state_.is_null()) {
    return std::nullopt;
  }
  if (number < past_number_) {
    if (past_text_ == nullptr) {
      past_text_ = EventText("snapshot", {{"t", past_ms_}, {"state", past_}});
    }
    return Event{past_text_, past_number_};
  }
  const uint64_t index = number - past_number_;
  if (index >= changes_.size()) {
    return std::nullopt;
  }
  return Event{changes_[index].text, number + 1};
}

size_t EventLog::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace ferry::tools

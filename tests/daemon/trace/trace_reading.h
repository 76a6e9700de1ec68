// Reads a trace as its viewers do: pairs beginnings with ends, and fails the test where they do not
// match.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/trace/trace_format.h"

namespace ferry::daemon {

struct TraceSpan {
  std::string name;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  nlohmann::json arguments;

  bool Overlaps(const TraceSpan& other) const {
    return begin_ns < other.end_ns && other.begin_ns < end_ns;
  }
};

struct TraceReading {
  std::vector<TraceSpan> spans;
  std::vector<nlohmann::json> moments;   // "i"
  std::vector<nlohmann::json> counters;  // "C"
  nlohmann::json other;

  std::vector<TraceSpan> Named(const std::string& name) const {
    std::vector<TraceSpan> found;
    std::copy_if(spans.begin(), spans.end(), std::back_inserter(found),
                 [&](const TraceSpan& span) { return span.name == name; });
    return found;
  }
  size_t MomentsNamed(const std::string& name) const {
    return static_cast<size_t>(std::count_if(
        moments.begin(), moments.end(), [&](const auto& event) { return event["name"] == name; }));
  }
};

inline TraceReading ReadTrace(const std::string& text) {
  using nlohmann::json;
  TraceReading reading;
  const json trace = json::parse(text, nullptr, false);
  if (!trace.is_object() || !trace["traceEvents"].is_array()) {
    ADD_FAILURE() << "no trace: " << text.substr(0, 500);
    return reading;
  }
  reading.other = trace["otherData"];
  std::map<std::string, TraceSpan> open;                                   // asynchronous
  std::map<std::pair<uint64_t, uint64_t>, std::vector<TraceSpan>> slices;  // by process, thread
  double last_us = 0;
  for (const json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "M") {
      continue;
    }
    const double at_us = event["ts"];
    EXPECT_GE(at_us, last_us) << "out of order: " << event;
    last_us = at_us;
    const auto at_ns = static_cast<uint64_t>(at_us * 1000 + 0.5);
    auto& stack = slices[{event["pid"], event["tid"]}];
    const auto begin = [&] { return TraceSpan{event["name"], at_ns, 0, event["args"]}; };
    const auto end = [&](TraceSpan span) {
      EXPECT_EQ(span.name, event["name"]) << event;
      span.end_ns = at_ns;
      reading.spans.push_back(std::move(span));
    };
    const std::string id = event.contains("id2")
                               ? event["pid"].dump() + event["id2"].dump() + event["cat"].dump()
                               : "";
    if (phase == "b") {
      EXPECT_TRUE(open.emplace(id, begin()).second) << "begun twice: " << event;
    } else if (phase == "e" && open.count(id) != 0) {
      end(open[id]);
      open.erase(id);
    } else if (phase == "B") {
      stack.push_back(begin());
    } else if (phase == "E" && !stack.empty()) {
      end(stack.back());
      stack.pop_back();
    } else if (phase == "i") {
      reading.moments.push_back(event);
    } else if (phase == "C") {
      reading.counters.push_back(event);
    } else {
      ADD_FAILURE() << "an end without a beginning, or no known phase: " << event;
    }
  }
  for (const auto& [id, span] : open) {
    ADD_FAILURE() << "never ended: " << span.name << " " << span.arguments;
  }
  for (const auto& [thread, stack] : slices) {
    EXPECT_TRUE(stack.empty()) << "never ended: " << stack.back().name;
  }
  return reading;
}

// All of a trace's text.
inline std::string TraceText(progress::TraceDump dump, const TraceSource& source) {
  std::string text;
  EXPECT_TRUE(FormatTrace(std::move(dump), source, [&](std::string_view piece) {
    text += piece;
    return true;
  }));
  return text;
}

inline TraceReading ReadTrace(StatusOr<progress::TraceDump> dump, uint32_t node) {
  EXPECT_TRUE(dump.ok()) << dump.status().ToString();
  return ReadTrace(TraceText(std::move(*dump), {"node", node}));
}

}  // namespace ferry::daemon

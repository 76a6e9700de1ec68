// A trace as JSON in the trace-event format, which ui.perfetto.dev and chrome://tracing open:
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
//
// Spans of copy workers, which do one thing at a time, are slices of their threads ("B", "E");
// all others, which overlap, are asynchronous ("b", "e"); moments are "i", counters "C". Times are
// microseconds of CLOCK_MONOTONIC, so that traces of the daemons of one machine fit together.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "internode/trace/tracer.h"

namespace ferry::daemon {

struct TraceSource {
  std::string node_name;
  uint32_t pid = 0;
};

// Hands the text to `write` piece by piece (some 64 KiB each), in order. False as soon as `write`
// returns false.
bool FormatTrace(progress::TraceDump dump, const TraceSource& source,
                 const std::function<bool(std::string_view)>& write);

}  // namespace ferry::daemon

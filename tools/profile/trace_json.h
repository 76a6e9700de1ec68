// Writes a timeline piece by piece in the trace-event format, which ui.perfetto.dev and
// chrome://tracing open: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
//
// The text is valid JSON for any names once End has been called. Memory: a piece.
//
// Calling thread: any, one at a time. Blocks as `write` does.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ferry::tools {

// A line of the picture: a thread of a process, as the format calls them.
struct Track {
  uint32_t process = 0;
  uint32_t thread = 0;
};

// The members of a JSON object that a slice shows when it is clicked at.
class Details {
 public:
  template <std::integral Number>
  Details& Add(std::string_view name, Number value) {
    return AddBare(name, std::to_string(value));
  }
  Details& Add(std::string_view name, std::string_view text);
  Details& AddFlag(std::string_view name);  // true
  const std::string& text() const { return text_; }

 private:
  Details& AddBare(std::string_view name, std::string_view value);

  std::string text_;
};

class TraceJson {
 public:
  // Takes the text, in order. False: no more is wanted.
  using Write = std::function<bool(std::string_view)>;

  explicit TraceJson(Write write);
  TraceJson(const TraceJson&) = delete;
  TraceJson& operator=(const TraceJson&) = delete;

  // `position`: among processes, or among threads of a process, from the top.
  void NameProcess(uint32_t process, std::string_view name, uint32_t position);
  void NameTrack(const Track& track, std::string_view name, uint32_t position);
  // Slices of a track lie beside each other or in each other. Times are nanoseconds since the
  // timeline's beginning; `end_ns` is not before `begin_ns`.
  void Slice(const Track& track, std::string_view category, std::string_view name,
             uint64_t begin_ns, uint64_t end_ns, const Details& details);
  // An arrow from the slice that its track has at one time to one at another; both ends have the
  // same `id`, which no other arrow has.
  void ArrowFrom(const Track& track, uint64_t id, uint64_t at_ns);
  void ArrowThrough(const Track& track, uint64_t id, uint64_t at_ns);  // a slice between them
  void ArrowTo(const Track& track, uint64_t id, uint64_t at_ns);

  // Ends the text; `facts` are about the whole timeline. False: `write` has returned false, now or
  // before.
  bool End(const Details& facts);
  bool is_wanted() const { return is_wanted_; }
  uint64_t events() const { return events_; }

 private:
  void Open(std::string_view phase, const Track& track);
  void AddTime(std::string_view name, uint64_t ns);
  void Close();
  void Arrow(std::string_view phase, const Track& track, uint64_t id, uint64_t at_ns);

  const Write write_;
  std::string text_;
  uint64_t events_ = 0;
  bool is_wanted_ = true;
};

}  // namespace ferry::tools

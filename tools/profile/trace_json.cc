#include "tools/profile/trace_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace ferry::tools {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

bool IsPlain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// Bytes that are no UTF-8 are replaced.
std::string Quoted(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) {  // all but what users have named
    return '"' + std::string(text) + '"';
  }
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

template <typename Number>
void Append(std::string* text, Number value, int base = 10) {
  char digits[24];
  const auto result = std::to_chars(std::begin(digits), std::end(digits), value, base);
  text->append(digits, result.ptr);
}

}  // namespace

// ---- Details ----------------------------------------------------------------------------------

Details& Details::AddBare(std::string_view name, std::string_view value) {
  text_ += text_.empty() ? "" : ",";
  text_ += Quoted(name);
  text_ += ':';
  text_ += value;
  return *this;
}

Details& Details::Add(std::string_view name, std::string_view text) {
  return AddBare(name, Quoted(text));
}

Details& Details::AddFlag(std::string_view name) { return AddBare(name, "true"); }

// ---- TraceJson ----------------------------------------------------------------------------------

TraceJson::TraceJson(Write write)
    : write_(std::move(write)), text_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") {}

void TraceJson::Open(std::string_view phase, const Track& track) {
  text_ += events_++ == 0 ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  text_ += phase;
  text_ += "\",\"pid\":";
  Append(&text_, track.process);
  text_ += ",\"tid\":";
  Append(&text_, track.thread);
}

// The format's times are microseconds, and may have decimals.
void TraceJson::AddTime(std::string_view name, uint64_t ns) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
  Append(&text_, ns / 1000);
  const uint64_t rest = ns % 1000;
  const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  text_.append(decimals, sizeof(decimals));
}

void TraceJson::Close() {
  text_ += '}';
  if (text_.size() >= kPieceBytes) {
    is_wanted_ = is_wanted_ && write_(text_);
    text_.clear();
  }
}

void TraceJson::NameProcess(uint32_t process, std::string_view name, uint32_t position) {
  Open("M", {process, 0});
  text_ += ",\"name\":\"process_name\",\"args\":{\"name\":" + Quoted(name) + "}";
  Close();
  Open("M", {process, 0});
  text_ +=
      ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" + std::to_string(position) + "}";
  Close();
}

void TraceJson::NameTrack(const Track& track, std::string_view name, uint32_t position) {
  Open("M", track);
  text_ += ",\"name\":\"thread_name\",\"args\":{\"name\":" + Quoted(name) + "}";
  Close();
  Open("M", track);
  text_ +=
      ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":" + std::to_string(position) + "}";
  Close();
}

void TraceJson::Slice(const Track& track, std::string_view category, std::string_view name,
                      uint64_t begin_ns, uint64_t end_ns, const Details& details) {
  Open("X", track);
  AddTime("ts", begin_ns);
  AddTime("dur", end_ns - begin_ns);
  text_ += ",\"cat\":" + Quoted(category) + ",\"name\":" + Quoted(name);
  if (!details.text().empty()) {
    text_ += ",\"args\":{";
    text_ += details.text();
    text_ += '}';
  }
  Close();
}

void TraceJson::Arrow(std::string_view phase, const Track& track, uint64_t id, uint64_t at_ns) {
  Open(phase, track);
  AddTime("ts", at_ns);
  text_ += ",\"cat\":\"message\",\"name\":\"message\",\"id\":\"0x";
  Append(&text_, id, 16);
  text_ += '"';
}

void TraceJson::ArrowFrom(const Track& track, uint64_t id, uint64_t at_ns) {
  Arrow("s", track, id, at_ns);
  Close();
}

void TraceJson::ArrowThrough(const Track& track, uint64_t id, uint64_t at_ns) {
  Arrow("t", track, id, at_ns);
  Close();
}

void TraceJson::ArrowTo(const Track& track, uint64_t id, uint64_t at_ns) {
  Arrow("f", track, id, at_ns);
  text_ += ",\"bp\":\"e\"";  // to the slice around it, not to the next one
  Close();
}

bool TraceJson::End(const Details& facts) {
  text_ += "\n],\n\"otherData\":{" + facts.text() + "}}\n";
  is_wanted_ = is_wanted_ && write_(text_);
  text_.clear();
  return is_wanted_;
}

}  // namespace ferry::tools

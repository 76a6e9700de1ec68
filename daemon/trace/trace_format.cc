#include "daemon/trace/trace_format.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "shm/daemon_trace.h"

namespace ferry::daemon {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
// As thread ids; the other places come before.
constexpr uint32_t kFirstCopyWorker = 10;
constexpr uint32_t kFirstStream = 1000;

std::string NameOf(progress::TraceKind kind) { return std::string(shm::DaemonWorkText(kind)); }

bool IsSpan(progress::TraceKind kind) { return kind >= progress::TraceKind::kRts; }

// Returns true if the record's place does one thing at a time, from its beginning to its end.
bool IsSlice(const progress::TraceRecord& record) {
  const bool copy =
      record.kind == progress::TraceKind::kCopyIn || record.kind == progress::TraceKind::kCopyOut;
  return copy && record.place != progress::TracePlace::kFerryWorker;
}

uint32_t ThreadOf(const progress::TraceRecord& record) {
  switch (record.place) {
    case progress::TracePlace::kCopyWorker:
      return kFirstCopyWorker + record.worker;
    case progress::TracePlace::kStream:
      return kFirstStream + record.worker;
    default:
      return static_cast<uint32_t>(record.place) + 1;
  }
}

std::string PlaceName(const progress::TraceRecord& record) {
  return shm::DaemonPlaceText(record.place, record.worker);
}

// Names may hold any bytes; what is no UTF-8 is replaced.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// One of a record's two ends, or the record as a whole.
struct Event {
  uint64_t at_ns;
  uint32_t record;
  bool is_end;

  // An end before a beginning at the same time, so that slices nest; but an empty span's own
  // beginning comes first, which a stable sort leaves so.
  bool operator<(const Event& other) const { return at_ns < other.at_ns; }
};

std::vector<Event> InOrder(const std::vector<progress::TraceRecord>& records) {
  std::vector<Event> events;
  events.reserve(2 * records.size());
  for (uint32_t i = 0; i < records.size(); ++i) {
    events.push_back({records[i].begin_ns, i, false});
    if (IsSpan(records[i].kind)) {
      events.push_back({records[i].end_ns, i, true});
    }
  }
  // Records stand in the order of their ends: of two slices that touch, the earlier one's end
  // stands before the later one's beginning.
  std::stable_sort(events.begin(), events.end());
  return events;
}

class Writer {
 public:
  Writer(progress::TraceDump dump, const TraceSource& source,
         const std::function<bool(std::string_view)>& write)
      : dropped_(dump.ring.dropped()),
        records_(dump.ring.Take()),
        begin_ns_(dump.begin_ns),
        end_ns_(dump.end_ns),
        source_(source),
        write_(write) {
    for (const std::string& job : dump.jobs) {
      jobs_.push_back(Quoted(job));
    }
  }

  bool Run() {
    text_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"node\":" + Quoted(source_.node_name) +
            ",\"pid\":" + std::to_string(source_.pid) +
            ",\"clock\":\"CLOCK_MONOTONIC\",\"begin_us\":" + Microseconds(begin_ns_) +
            ",\"end_us\":" + Microseconds(end_ns_) +
            ",\"records\":" + std::to_string(records_.size()) +
            ",\"dropped_records\":" + std::to_string(dropped_) + "},\n\"traceEvents\":[\n";
    NameProcess();
    for (const Event& event : InOrder(records_)) {
      Add(records_[event.record], event);
      if (text_.size() >= kPieceBytes && !Pass()) {
        return false;
      }
    }
    text_ += "\n]}\n";
    return Pass();
  }

 private:
  static std::string Microseconds(uint64_t ns) {
    std::array<char, 32> text{};
    const int length = std::snprintf(text.data(), text.size(), "%llu.%03llu",
                                     static_cast<unsigned long long>(ns / 1000),
                                     static_cast<unsigned long long>(ns % 1000));
    return {text.data(), static_cast<size_t>(length)};
  }

  bool Pass() {
    const bool more = write_(text_);
    text_.clear();
    return more;
  }

  void NameProcess() {
    const std::string start = "{\"ph\":\"M\",\"pid\":" + std::to_string(source_.pid);
    text_ += start + ",\"name\":\"process_name\",\"args\":{\"name\":" +
             Quoted("ferryd " + source_.node_name) + "}}";
    std::set<uint32_t> named;
    for (const progress::TraceRecord& record : records_) {
      const uint32_t thread = ThreadOf(record);
      if (named.insert(thread).second) {
        text_ += ",\n" + start + ",\"tid\":" + std::to_string(thread) +
                 ",\"name\":\"thread_name\",\"args\":{\"name\":" + Quoted(PlaceName(record)) + "}}";
      }
    }
  }

  // The members that every event has; `phase` as the format calls it.
  void Open(const char* phase, const std::string& name, const progress::TraceRecord& record,
            uint64_t at_ns) {
    text_ += ",\n{\"ph\":\"" + std::string(phase) + "\",\"pid\":" + std::to_string(source_.pid) +
             ",\"tid\":" + std::to_string(ThreadOf(record)) + ",\"ts\":" + Microseconds(at_ns) +
             ",\"name\":\"" + name + "\"";
  }

  void Add(const progress::TraceRecord& record, const Event& event) {
    if (record.kind == progress::TraceKind::kCounters) {
      return AddCounters(record);
    }
    const bool slice = IsSlice(record);
    const char* phase = !IsSpan(record.kind) ? "i"
                        : event.is_end       ? (slice ? "E" : "e")
                                             : (slice ? "B" : "b");
    Open(phase, NameOf(record.kind), record, event.at_ns);
    text_ += ",\"cat\":\"" + PlaceName(record) + "\"";
    if (!IsSpan(record.kind)) {
      text_ += ",\"s\":\"t\"";
    } else if (!slice) {
      text_ += ",\"id2\":{\"local\":\"" + std::to_string(event.record + 1) + "\"}";
    }
    if (!event.is_end) {
      AddArguments(record);
    }
    text_ += "}";
  }

  void AddCounters(const progress::TraceRecord& record) {
    const progress::TraceCounters counters = CountersOf(record);
    Open("C", "network operations", record, record.begin_ns);
    text_ += ",\"args\":{\"outstanding\":" + std::to_string(counters.operations) + "}}";
    Open("C", "staging", record, record.begin_ns);
    text_ += ",\"args\":{\"busy blocks\":" + std::to_string(counters.staging_busy) +
             ",\"waiting transfers\":" + std::to_string(counters.staging_waits) + "}}";
  }

  void AddArguments(const progress::TraceRecord& record) {
    text_ += ",\"args\":{\"job\":" + jobs_[record.job] +
             ",\"rank\":" + std::to_string(record.rank) +
             ",\"peer\":" + std::to_string(record.peer) +
             ",\"peer_node\":" + std::to_string(record.peer_node) + ",\"place\":\"" +
             PlaceName(record) + "\",\"bytes\":" + std::to_string(record.bytes);
    if (record.message != 0) {
      text_ += ",\"message\":\"" + std::to_string(static_cast<uint32_t>(record.message)) + "." +
               std::to_string(record.message >> 32) +
               "\",\"offset\":" + std::to_string(record.offset);
    }
    if (record.block != progress::kNoBlock) {
      text_ += ",\"block\":" + std::to_string(record.block);
    }
    if (record.error == progress::TraceError(ErrorCode::kWouldBlock)) {
      text_ += ",\"unfinished\":true";
    } else if (record.error != 0) {
      text_ +=
          ",\"error\":\"" + std::string(ErrorCodeText(static_cast<ErrorCode>(record.error))) + "\"";
    }
    text_ += "}";
  }

  const uint64_t dropped_;
  const std::vector<progress::TraceRecord> records_;
  const uint64_t begin_ns_;
  const uint64_t end_ns_;
  const TraceSource& source_;
  const std::function<bool(std::string_view)>& write_;
  std::vector<std::string> jobs_;  // quoted
  std::string text_;
};

}  // namespace

bool FormatTrace(progress::TraceDump dump, const TraceSource& source,
                 const std::function<bool(std::string_view)>& write) {
  return Writer(std::move(dump), source, write).Run();
}

}  // namespace ferry::daemon

// Merges the output of many processes into one stream, at once, and by whole lines where that is
// possible.
//
// Main thread; nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::tools {

// A descriptor that several sources write to and that may be slow: text waits here.
class OutputSink {
 public:
  explicit OutputSink(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  std::string* text() { return &text_; }
  bool empty() const { return text_.empty(); }
  // Sources should not be read while this holds.
  bool IsFull() const { return text_.size() > kMaxWaitingBytes; }

  // Writes as much as goes without waiting. Returns 0 or errno; after an error the text is dropped.
  int Flush();

 private:
  static constexpr size_t kMaxWaitingBytes = 1 << 20;

  size_t ChunkSize(size_t start) const;

  int fd_;
  std::string text_;
};

// Merges the output of several sources into one sink. A line that one source has begun, such as a
// prompt or a progress bar, goes out at once; the others then wait for its end, but not for long.
// Without labels no byte is added or taken away. With them, what ends with \r, as progress bars
// write it, is a line too, over which the next one of that source is written.
class LineMixer {
 public:
  // The longest time that the others wait.
  static constexpr uint64_t kPatienceNs = 100'000'000;

  explicit LineMixer(OutputSink* sink) : sink_(sink) {}

  // Adds a source and returns its number. Each of its lines gets the label before it.
  size_t Add(std::string label);
  void Feed(size_t source, std::string_view bytes, uint64_t now_ns);
  // Ends a source. Its unfinished last line is over; with a label, it gets a line end.
  void Finish(size_t source, uint64_t now_ns);
  // Finishes all sources; none waits any more.
  void FinishAll();
  // Writes a line of ferryrun's own, with its end; it does not wait.
  void Say(std::string_view line);

  // The time at which to call OnTime; 0: no source waits.
  uint64_t deadline_ns() const {
    return waiting_since_ns_ == 0 ? 0 : waiting_since_ns_ + kPatienceNs;
  }
  void OnTime(uint64_t now_ns);
  // Sources should not be read while this holds.
  bool IsFull() const { return sink_->IsFull(); }

 private:
  struct Source {
    std::string label;
    std::string held;
    bool at_start = true;   // of a line
    bool returned = false;  // with a label: there by a \r
    bool ended = false;
  };
  static constexpr size_t kMaxHeldBytes = 1 << 16;

  // The bytes up to the last end of a line, with it.
  static size_t WholeLines(const Source& source);
  void Advance(uint64_t now_ns);
  void WriteLine(Source* source, std::string_view line);
  // Writes the first bytes that the source holds.
  void Write(Source* source, size_t bytes);
  void WriteWholeLines();
  void BeginNextLine();
  // Ends the turn of the begun line, which stays as it is.
  void BreakLine(bool new_line);
  bool AnyLabelWaits() const;

  OutputSink* const sink_;
  std::vector<Source> sources_;
  size_t held_bytes_ = 0;
  std::optional<size_t> open_;      // the source whose line has begun
  std::optional<size_t> to_cover_;  // the source whose line the next one would be written over
  uint64_t waiting_since_ns_ = 0;
};

// Shows a message that many ranks print once, at once, and later how many more ranks have printed
// it.
class SameWords {
 public:
  // A burst is over after kQuietNs without the words, and at the latest kPatienceNs after its first
  // repetition.
  static constexpr uint64_t kQuietNs = 500'000'000;
  static constexpr uint64_t kPatienceNs = 10'000'000'000;

  // Returns true if the rank's words are to be shown: it is the first that says them, or it says
  // them again.
  bool IsNew(uint32_t rank, std::string_view words, uint64_t now_ns);

  // Filters bytes from a rank's standard error: drops the library's lines (common/library_words.h)
  // that are not new. Holds nothing back: a line that comes in pieces is left as it is.
  std::string Sift(uint32_t rank, std::string_view bytes, uint64_t now_ns);

  // The time at which to call TakeDue; 0: all has been told.
  uint64_t deadline_ns() const;
  // Returns the sentences that are due, which say how many more ranks said what. `now_ns`
  // UINT64_MAX: all that are left.
  std::vector<std::string> TakeDue(uint64_t now_ns);

 private:
  struct Saying {
    std::string words;
    std::vector<bool> said_by;   // each once
    std::vector<uint32_t> more;  // those of them who were not shown and have not been told of
    uint64_t first_more_ns = 0;
    uint64_t last_more_ns = 0;
    uint64_t due_ns() const;  // 0: nothing to tell
  };
  static constexpr size_t kMostRemembered = 64;

  static std::string Tell(Saying* saying);

  std::deque<Saying> sayings_;     // the oldest first
  std::vector<std::string> told_;  // of sayings that are forgotten
  std::vector<bool> mid_line_;     // by rank
};

}  // namespace ferry::tools

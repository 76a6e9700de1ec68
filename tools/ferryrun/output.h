// Output of many processes as one stream of whole lines.
//
// Main thread; nothing blocks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::tools {

// Cuts what one process writes into lines and puts a label before each.
class LineSplitter {
 public:
  // Longer lines are passed on in pieces (with a label: on lines of their own).
  static constexpr size_t kMaxLineBytes = 1 << 16;

  explicit LineSplitter(std::string label) : label_(std::move(label)) {}

  // Adds the lines that `bytes` complete to `out`.
  void Feed(std::string_view bytes, std::string* out);
  // Adds an unfinished last line to `out`; with a label, a line end too.
  void Finish(std::string* out);

 private:
  std::string label_;
  std::string partial_;
};

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

}  // namespace ferry::tools

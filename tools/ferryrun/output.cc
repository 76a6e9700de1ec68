#include "tools/ferryrun/output.h"

#include <cxxabi.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/library_words.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostRanges = 16;

// "0-3, 7, 9-12", and no end of it where there are many.
std::string Ranges(std::vector<uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  size_t ranges = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
      ++end;
    }
    if (ranges++ == kMostRanges) {
      return text + ", ...";
    }
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    text += end - i > 1 ? "-" + std::to_string(ranks[end - 1]) : "";
    i = end;
  }
  return text;
}

// True if the bit was not set yet.
bool Set(std::vector<bool>* bits, uint32_t index) {
  bits->resize(std::max<size_t>(bits->size(), index + 1));
  const bool was_set = (*bits)[index];
  (*bits)[index] = true;
  return !was_set;
}

// Names of C++ functions, which stand in reports of crashes as the linker knows them.
std::string WithReadableNames(std::string_view words) {
  constexpr std::string_view kMark = " _Z";
  std::string text;
  for (size_t mark = words.find(kMark); mark != words.npos; mark = words.find(kMark)) {
    const size_t begin = mark + 1;
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string name(words.substr(begin, end - begin));
    int status = 0;
    char* const readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    text.append(words, 0, begin).append(readable != nullptr ? readable : name);
    std::free(readable);
    words.remove_prefix(end);
  }
  return text.append(words);
}

}  // namespace

// At most PIPE_BUF bytes, up to a line end if there is one: standard error may go the same way.
size_t OutputSink::ChunkSize(size_t start) const {
  const std::string_view chunk = std::string_view(text_).substr(start, PIPE_BUF);
  const size_t end = chunk.rfind('\n');
  return end == chunk.npos ? chunk.size() : end + 1;
}

int OutputSink::Flush() {
  // A descriptor that polls as writable takes PIPE_BUF bytes without blocking, so the stream's own
  // flags, which others share, need not change.
  size_t written = 0;
  int error_number = 0;
  while (written < text_.size() && error_number == 0) {
    pollfd ready = {fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) {
      break;
    }
    const ssize_t size = write(fd_, text_.data() + written, ChunkSize(written));
    if (size > 0) {
      written += static_cast<size_t>(size);
    } else if (errno != EINTR && errno != EAGAIN) {
      error_number = errno;
    } else {
      break;
    }
  }
  text_.erase(0, error_number == 0 ? written : text_.size());
  return error_number;
}

size_t LineMixer::Add(std::string label) {
  sources_.emplace_back().label = std::move(label);
  return sources_.size() - 1;
}

void LineMixer::Feed(size_t source, std::string_view bytes, uint64_t now_ns) {
  sources_[source].held += bytes;
  held_bytes_ += bytes.size();
  Advance(now_ns);
}

void LineMixer::Finish(size_t source, uint64_t now_ns) {
  Source& own = sources_[source];
  own.ended = true;
  const bool unfinished =
      own.held.empty() ? !own.at_start || own.returned : own.held.back() != '\n';
  if (unfinished && !own.label.empty()) {
    own.held += '\n';
    ++held_bytes_;
  } else if (open_ == source && own.held.empty()) {
    open_.reset();
  }
  Advance(now_ns);
}

void LineMixer::FinishAll() {
  for (size_t source = 0; source < sources_.size(); ++source) {
    Finish(source, UINT64_MAX);
  }
}

void LineMixer::Say(std::string_view line) {
  BreakLine(/*new_line=*/true);
  *sink_->text() += std::exchange(to_cover_, std::nullopt) ? "\n" : "";
  *sink_->text() += line;
}

void LineMixer::OnTime(uint64_t now_ns) {
  if (waiting_since_ns_ != 0) {
    Advance(now_ns);
  }
}

void LineMixer::Advance(uint64_t now_ns) {
  while (held_bytes_ > 0) {
    if (open_) {
      Source& begun = sources_[*open_];
      Write(&begun, begun.held.size());
      if (begun.at_start || begun.ended) {
        open_.reset();
      }
    }
    if (!open_) {
      WriteWholeLines();
      BeginNextLine();
    }
    if (held_bytes_ == 0) {
      break;
    }
    waiting_since_ns_ = waiting_since_ns_ == 0 ? now_ns : waiting_since_ns_;
    const bool in_time = now_ns < waiting_since_ns_ + kPatienceNs;
    if (in_time && held_bytes_ < kMaxHeldBytes) {
      return;
    }
    BreakLine(AnyLabelWaits());
    waiting_since_ns_ = 0;
  }
  waiting_since_ns_ = 0;
}

void LineMixer::Write(Source* source, size_t bytes) {
  std::string_view text = std::string_view(source->held).substr(0, bytes);
  while (!text.empty()) {
    const char* const ends = source->label.empty() ? "\n" : "\r\n";
    size_t size = std::min(text.find_first_of(ends), text.size() - 1) + 1;
    size += text[size - 1] == '\r' && size < text.size() && text[size] == '\n' ? 1 : 0;
    WriteLine(source, text.substr(0, size));
    text.remove_prefix(size);
  }
  held_bytes_ -= bytes;
  source->held.erase(0, bytes);
}

// A whole line, or a part of one.
void LineMixer::WriteLine(Source* source, std::string_view line) {
  const auto index = static_cast<size_t>(source - sources_.data());
  const bool returns = !source->label.empty() && line.back() == '\r';
  // Two progress bars share a line, but words are not written over one.
  if (to_cover_ && *to_cover_ != index && !returns) {
    *sink_->text() += '\n';
    to_cover_.reset();
  }
  const bool is_late_end = source->returned && line == "\n";  // of \r\n
  if (source->at_start && line != "\r" && !is_late_end) {
    *sink_->text() += source->label;
  }
  *sink_->text() += line;
  source->at_start = line.back() == '\n' || returns;
  source->returned = returns;
  to_cover_ = returns ? std::optional(index) : std::nullopt;
}

size_t LineMixer::WholeLines(const Source& source) {
  const size_t end = source.held.find_last_of(source.label.empty() ? "\n" : "\r\n");
  return end == std::string::npos ? 0 : end + 1;
}

void LineMixer::WriteWholeLines() {
  for (Source& source : sources_) {
    if (const size_t size = WholeLines(source); size > 0) {
      Write(&source, size);
    }
  }
}

void LineMixer::BeginNextLine() {
  for (size_t i = 0; i < sources_.size() && !open_; ++i) {
    Source& source = sources_[i];
    if (!source.held.empty()) {
      Write(&source, source.held.size());
      if (!source.ended) {
        open_ = i;
      }
    }
  }
}

void LineMixer::BreakLine(bool new_line) {
  if (!open_) {
    return;
  }
  Source& begun = sources_[*open_];
  if (new_line || !begun.label.empty()) {
    *sink_->text() += '\n';
    begun.at_start = true;
  }
  open_.reset();
}

bool LineMixer::AnyLabelWaits() const {
  return std::any_of(sources_.begin(), sources_.end(), [](const Source& source) {
    return !source.held.empty() && !source.label.empty();
  });
}

uint64_t SameWords::Saying::due_ns() const {
  return more.empty() ? 0 : std::min(last_more_ns + kQuietNs, first_more_ns + kPatienceNs);
}

bool SameWords::IsNew(uint32_t rank, std::string_view words, uint64_t now_ns) {
  const auto found = std::find_if(sayings_.begin(), sayings_.end(),
                                  [&](const Saying& saying) { return saying.words == words; });
  if (found != sayings_.end() && Set(&found->said_by, rank)) {
    found->first_more_ns = found->more.empty() ? now_ns : found->first_more_ns;
    found->last_more_ns = now_ns;
    found->more.push_back(rank);
    return false;
  }
  Saying begun{.words = std::string(words), .said_by = {}, .more = {}};
  Set(&begun.said_by, rank);
  // Words that the rank says once more begin anew; so do those of long ago.
  const bool is_full = sayings_.size() == kMostRemembered;
  if (const auto old = found == sayings_.end() && is_full ? sayings_.begin() : found;
      old != sayings_.end()) {
    if (!old->more.empty()) {
      told_.push_back(Tell(&*old));
    }
    sayings_.erase(old);
  }
  sayings_.push_back(std::move(begun));
  return true;
}

std::string SameWords::Sift(uint32_t rank, std::string_view bytes, uint64_t now_ns) {
  mid_line_.resize(std::max<size_t>(mid_line_.size(), rank + 1));
  std::string rest;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end == bytes.npos ? end : end + 1);
    const bool is_whole = end != bytes.npos && !mid_line_[rank];
    std::string_view words = line;
    if (!is_whole || !words.starts_with(kLibraryWords)) {
      rest += line;
    } else {
      words.remove_prefix(kLibraryWords.size());
      words.remove_suffix(1);
      const std::string own = RankWords(rank);
      words.remove_prefix(words.starts_with(own) ? own.size() : 0);
      const std::string readable = WithReadableNames(words);
      if (IsNew(rank, readable, now_ns)) {
        rest.append(line, 0, line.size() - words.size() - 1).append(readable) += '\n';
      }
    }
    mid_line_[rank] = end == bytes.npos;
    bytes.remove_prefix(line.size());
  }
  return rest;
}

uint64_t SameWords::deadline_ns() const {
  uint64_t next_ns = told_.empty() ? 0 : 1;  // at once
  for (const Saying& saying : sayings_) {
    const uint64_t due_ns = saying.due_ns();
    next_ns = due_ns == 0 || (next_ns != 0 && next_ns < due_ns) ? next_ns : due_ns;
  }
  return next_ns;
}

std::vector<std::string> SameWords::TakeDue(uint64_t now_ns) {
  std::vector<std::string> told = std::exchange(told_, {});
  for (Saying& saying : sayings_) {
    if (const uint64_t due_ns = saying.due_ns(); due_ns != 0 && now_ns >= due_ns) {
      told.push_back(Tell(&saying));
    }
  }
  return told;
}

std::string SameWords::Tell(Saying* saying) {
  const std::vector<uint32_t> more = std::exchange(saying->more, {});
  return "the same from " + std::to_string(more.size()) +
         (more.size() == 1 ? " more rank (" : " more ranks (") + Ranges(more) +
         "): " + saying->words;
}

}  // namespace ferry::tools

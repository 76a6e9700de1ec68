#include "tools/ferryrun/output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ferry::tools {

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
  const bool unfinished = own.held.empty() ? !own.at_start : own.held.back() != '\n';
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
    if (source->at_start) {
      *sink_->text() += source->label;
    }
    const size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    sink_->text()->append(text.substr(0, size));
    source->at_start = text[size - 1] == '\n';
    text.remove_prefix(size);
  }
  held_bytes_ -= bytes;
  source->held.erase(0, bytes);
}

void LineMixer::WriteWholeLines() {
  for (Source& source : sources_) {
    if (const size_t end = source.held.rfind('\n'); end != std::string::npos) {
      Write(&source, end + 1);
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

}  // namespace ferry::tools

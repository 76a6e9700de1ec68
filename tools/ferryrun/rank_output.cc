#include "tools/ferryrun/rank_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/clock.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 14;
constexpr int kDrainBlocks = 64;  // more than a pipe holds

}  // namespace

RankOutput::RankOutput(uint32_t ranks, bool labelled, RankFiles* files)
    : ranks_(ranks),
      labelled_(labelled && files == nullptr),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      files_(files) {}

std::string RankOutput::Label(uint32_t rank) const {
  if (!labelled_) {
    return "";
  }
  const std::string number = std::to_string(rank);
  const size_t width = std::to_string(ranks_ - 1).size();
  return "[" + std::string(width - number.size(), ' ') + number + "] ";
}

void RankOutput::AddRank(UniqueFd out, UniqueFd err) {
  const auto rank = static_cast<int>(streams_.size() / 2);
  const std::string label = Label(static_cast<uint32_t>(rank));
  streams_.push_back({std::move(out), &out_lines_, out_lines_.Add(label), rank});
  streams_.push_back({std::move(err), &err_lines_, err_lines_.Add(label), rank, /*is_error=*/true});
}

void RankOutput::AddLauncher(const std::string& host, UniqueFd errors) {
  launchers_.push_back({std::move(errors), &err_lines_, err_lines_.Add("[" + host + "] ")});
}

void RankOutput::FeedRank(uint32_t rank, bool is_error, std::string_view bytes) {
  Feed(&streams_[2 * rank + (is_error ? 1 : 0)], bytes);
}

void RankOutput::AppendInterests(std::vector<pollfd>* fds) const {
  fds->push_back({out_.empty() ? -1 : out_.fd(), POLLOUT, 0});
  fds->push_back({err_.empty() ? -1 : err_.fd(), POLLOUT, 0});
  for (const std::vector<Stream>* streams : {&streams_, &launchers_}) {
    for (const Stream& stream : *streams) {
      fds->push_back({stream.lines->IsFull() ? -1 : stream.fd.get(), POLLIN, 0});
    }
  }
}

void RankOutput::OnReady(const pollfd* fds) {
  fds += 2;  // the sinks: Flush tries them
  for (std::vector<Stream>* streams : {&streams_, &launchers_}) {
    for (Stream& stream : *streams) {
      if ((fds++)->revents != 0) {
        Read(&stream);
      }
    }
  }
}

void RankOutput::Read(Stream* stream) {
  char bytes[kBlockBytes];
  const ssize_t size = read(stream->fd.get(), bytes, sizeof(bytes));
  if (size > 0) {
    Feed(stream, {bytes, static_cast<size_t>(size)});
  } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
    stream->lines->Finish(stream->source, MonotonicNs());
    stream->fd.Reset();
  }
}

void RankOutput::Feed(Stream* stream, std::string_view bytes) {
  const uint64_t now_ns = MonotonicNs();
  const auto rank = static_cast<uint32_t>(stream->rank);
  if (stream->rank >= 0 && files_ != nullptr) {
    const Status written = files_->Write(rank, stream->is_error, bytes);
    file_trouble_ = written.ok() ? file_trouble_ : written;
  } else if (stream->is_error) {
    stream->lines->Feed(stream->source, same_words_.Sift(rank, bytes, now_ns), now_ns);
  } else {
    stream->lines->Feed(stream->source, bytes, now_ns);
  }
}

Status RankOutput::Flush() {
  err_.Flush();
  if (const int error_number = out_.Flush(); error_number != 0) {
    return StatusFromErrno(error_number, "cannot write to standard output");
  }
  return std::exchange(file_trouble_, Status());
}

void RankOutput::ResizeTerminals(const TerminalSize& size) const {
  for (const Stream& stream : streams_) {
    if (!stream.is_error) {
      Resize(stream.fd.get(), size);
    }
  }
}

uint64_t RankOutput::deadline_ns() const {
  uint64_t next_ns = UINT64_MAX;
  for (const uint64_t time_ns :
       {out_lines_.deadline_ns(), err_lines_.deadline_ns(), same_words_.deadline_ns()}) {
    next_ns = time_ns == 0 ? next_ns : std::min(next_ns, time_ns);
  }
  return next_ns;
}

void RankOutput::OnTime(uint64_t now_ns) {
  out_lines_.OnTime(now_ns);
  err_lines_.OnTime(now_ns);
  TellSameWords(now_ns);
}

void RankOutput::TellSameWords(uint64_t now_ns) {
  for (const std::string& text : same_words_.TakeDue(now_ns)) {
    Say(text);
  }
}

bool RankOutput::IsNew(uint32_t rank, const std::string& words) {
  return same_words_.IsNew(rank, words, MonotonicNs());
}

void RankOutput::Drain() {
  for (std::vector<Stream>* streams : {&streams_, &launchers_}) {
    for (Stream& stream : *streams) {
      for (int block = 0; block < kDrainBlocks && stream.fd.valid(); ++block) {
        Read(&stream);
      }
    }
    streams->clear();
  }
  out_lines_.FinishAll();
  err_lines_.FinishAll();
  TellSameWords(UINT64_MAX);
}

}  // namespace ferry::tools

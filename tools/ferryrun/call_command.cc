#include "tools/ferryrun/call_command.h"

#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/clock.h"
#include "common/process_handle.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostWordsBytes = 1 << 16;

}  // namespace

StatusOr<std::unique_ptr<CallCommand>> CallCommand::Start(
    const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  StatusOr<std::unique_ptr<LauncherProcess>> process = LauncherProcess::Start(words, variables);
  FERRY_RETURN_IF_ERROR(process.status());
  std::unique_ptr<CallCommand> command(new CallCommand(std::move(*process)));
  StatusOr<UniqueFd> exit = OpenProcessHandle(command->pid());
  FERRY_RETURN_IF_ERROR(exit.status());
  command->exit_ = std::move(*exit);
  return command;
}

void CallCommand::Serve(EventSet* events, std::function<void(std::string_view line)> on_line,
                        std::function<void()> on_end) {
  events_ = events;
  on_line_ = std::move(on_line);
  on_end_ = std::move(on_end);
  events->Add(process_->WordsInterest().fd, EPOLLIN, [this](uint32_t) { Hear(); });
  events->Add(process_->errors_fd(), EPOLLIN, [this](uint32_t) { HearErrors(); });
  if (exit_.valid()) {
    events->Add(exit_.get(), EPOLLIN, [this](uint32_t) { OnEnd(); });
  }
}

void CallCommand::Terminate() { kill(process_->pid(), SIGTERM); }

// Returns true if it had something to say.
bool CallCommand::Hear() {
  const int fd = process_->WordsInterest().fd;
  process_->Receive(kMostWordsBytes);
  const std::string words = process_->Take();
  output_ += words;
  size_t begin = 0;
  for (size_t end = output_.find('\n'); end != output_.npos; end = output_.find('\n', begin)) {
    on_line_(std::string_view(output_).substr(begin, end - begin));
    begin = end + 1;
  }
  output_.erase(0, begin);
  if (output_.size() > kMostWordsBytes) {
    output_.clear();
  }
  if (fd >= 0 && process_->ended()) {
    events_->Remove(fd);
    if (!exit_.valid()) {
      OnEnd();
    }
  }
  return !words.empty();
}

void CallCommand::HearErrors() {
  const int fd = process_->errors_fd();
  std::string text = process_->ReadErrors(kMostWordsBytes);
  for (; !text.empty(); text = process_->ReadErrors(kMostWordsBytes)) {
    errors_ += text.substr(0, kMostWordsBytes - std::min(errors_.size(), kMostWordsBytes));
  }
  // As srun ("error:") and flux ("Error:") begin what is one.
  if (error_ns_ == 0 && errors_.find("rror:") != errors_.npos) {
    error_ns_ = MonotonicNs();
  }
  if (fd >= 0 && process_->errors_fd() < 0) {
    events_->Remove(fd);
  }
}

// Its own processes may hold its streams for longer.
void CallCommand::OnEnd() {
  if (exit_.valid()) {
    events_->Remove(exit_.get());
  }
  while (Hear()) {
  }
  ended_ns_ = MonotonicNs();
  on_end_();
}

std::string CallCommand::Written() {
  HearErrors();
  const std::string written = Trimmed(errors_);
  return written.empty() ? "" : "; " + name() + " wrote:\n  " + written;
}

UniqueFd CallCommand::TakeErrors() {
  HearErrors();
  if (const std::string written = Trimmed(std::exchange(errors_, {})); !written.empty()) {
    std::fprintf(stderr, "%s\n", written.c_str());
  }
  if (process_->errors_fd() >= 0) {
    events_->Remove(process_->errors_fd());
  }
  return process_->TakeErrors();
}

}  // namespace ferry::tools

#include "tools/ferryrun/remote_host.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "tools/ferryrun/launcher_process.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr int kLookMs = 50;  // between looks at what cannot be polled for

}  // namespace

StatusOr<std::unique_ptr<RemoteHost>> RemoteHost::Start(const std::string& name,
                                                        const std::vector<std::string>& command) {
  StatusOr<std::unique_ptr<LauncherProcess>> launcher = LauncherProcess::Start(command);
  if (!launcher.ok()) {
    return Status(launcher.status().code(), "host " + name + ": " + launcher.status().message());
  }
  return std::make_unique<RemoteHost>(name, std::move(*launcher));
}

void RemoteHost::Send(FrameKind kind, uint32_t rank, std::string_view payload) {
  std::string frame;
  AppendFrame(kind, rank, payload, &frame);
  stream_->Write(frame);
}

StatusOr<std::optional<Frame>> RemoteHost::Next() {
  reader_.Feed(stream_->Take());
  StatusOr<std::optional<Frame>> frame = reader_.Next();
  if (!frame.ok()) {
    return Status(frame.status().code(), Title() + ": " + frame.status().message());
  }
  return frame;
}

StatusOr<Frame> RemoteHost::Await(FrameKind kind, uint64_t timeout_ms, SignalSource* signals) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ms * 1'000'000;
  while (true) {
    StatusOr<std::optional<Frame>> frame = Next();
    FERRY_RETURN_IF_ERROR(frame.status());
    if (frame->has_value() && (*frame)->kind == kind) {
      return std::move(**frame);
    }
    if (frame->has_value() && (*frame)->kind == FrameKind::kFailed) {
      const Status failed = ReadFailed(**frame);
      return Status(failed.code(), Title() + ": " + failed.message());
    }
    if (frame->has_value()) {
      continue;  // an answer to a caller that gave up
    }
    if (ended()) {
      return Status(ErrorCode::kNodeUnreachable, "cannot reach " + Title() + ": " + LastWords());
    }
    if (MonotonicNs() >= deadline_ns) {
      return Status(ErrorCode::kTimeout,
                    Title() + " did not answer within " + std::to_string(timeout_ms) + " ms");
    }
    pollfd fds[] = {WordsInterest(), RoomInterest(), {signals->fd(), POLLIN, 0}};
    poll(fds, 3, kLookMs);
    FERRY_RETURN_IF_ERROR(signals->CheckInterrupt());
    Advance();
  }
}

void RemoteHost::AwaitEnd(uint64_t timeout_ms) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ms * 1'000'000;
  while (!ended() && MonotonicNs() < deadline_ns) {
    pollfd fds[] = {WordsInterest(), RoomInterest()};
    poll(fds, 2, kLookMs);
    Advance();
    StatusOr<std::optional<Frame>> frame = Next();
    while (frame.ok() && frame->has_value()) {
      frame = Next();
    }
  }
}

std::string RemoteHost::LastWords() {
  const std::string words = stream_->HowEnded();
  std::string written = reader_.preamble();
  char bytes[kBlockBytes];
  const int errors = stream_->errors_fd();
  const ssize_t size = errors >= 0 ? read(errors, bytes, sizeof(bytes)) : 0;
  written.append(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  written = Trimmed(std::move(written));
  return written.empty() ? words : words + "; it wrote:\n  " + written;
}

}  // namespace ferry::tools

#include "tools/ferryctl/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "common/unique_fd.h"

namespace ferry::tools {
namespace {

// A file that is changed when there is something to write, and removed if it was made for nothing.
class Output {
 public:
  static StatusOr<Output> Open(const std::string& path) {
    if (path.empty()) {
      return Output(path, UniqueFd(dup(STDOUT_FILENO)), false);
    }
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
    UniqueFd fd(open(path.c_str(), kFlags | O_EXCL, 0644));
    const bool made = fd.valid();
    if (!made && errno == EEXIST) {
      fd.Reset(open(path.c_str(), kFlags, 0644));
    }
    if (!fd.valid()) {
      return StatusFromErrno(errno, "cannot write the trace to " + path);
    }
    return Output(path, std::move(fd), made);
  }

  Status Write(std::string_view text) {
    if (!std::exchange(begun_, true) && !path_.empty()) {
      (void)!ftruncate(fd_.get(), 0);  // a pipe has no length
    }
    while (!text.empty()) {
      const ssize_t count = write(fd_.get(), text.data(), text.size());
      if (count < 0 && errno != EINTR) {
        return StatusFromErrno(
            errno, "writing the trace to " + (path_.empty() ? "standard output" : path_));
      }
      text.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
    }
    return {};
  }

  void Undo() const {
    if (made_ && !begun_) {
      unlink(path_.c_str());
    }
  }

 private:
  Output(std::string path, UniqueFd fd, bool made)
      : path_(std::move(path)), fd_(std::move(fd)), made_(made) {}

  std::string path_;
  UniqueFd fd_;
  bool made_;
  bool begun_ = false;
};

}  // namespace

StatusOr<TraceCounts> FetchTrace(const AdminClient& client, const std::string& path) {
  StatusOr<Output> output = Output::Open(path);
  FERRY_RETURN_IF_ERROR(output.status());
  grpc::ClientContext context;
  const auto stream = client.stub().StopTrace(&context, control::StopTraceRequest());
  TraceCounts counts;
  control::TracePiece piece;
  Status written;
  while (written.ok() && stream->Read(&piece)) {
    counts.records += piece.records();
    counts.dropped += piece.dropped();
    written = output->Write(piece.text());
  }
  if (!written.ok()) {
    context.TryCancel();
  }
  const Status ended = client.FromGrpc(stream->Finish());
  FERRY_RETURN_IF_ERROR(written);
  if (!ended.ok()) {
    output->Undo();
    return ended;
  }
  return counts;
}

std::string TraceText(const std::string& path, const TraceCounts& counts) {
  return path + ": " + std::to_string(counts.records) + " records" +
         (counts.dropped == 0 ? std::string()
                              : ", the last ones: " + std::to_string(counts.dropped) +
                                    " older ones were dropped (ferryd's option trace_events)") +
         "; open it in ui.perfetto.dev\n";
}

}  // namespace ferry::tools

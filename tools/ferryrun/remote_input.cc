#include "tools/ferryrun/remote_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 14;

}  // namespace

StatusOr<UniqueFd> RemoteInput::Start(RemoteHost* host) {
  StatusOr<Pipe> pipe = MakePipe();
  FERRY_RETURN_IF_ERROR(pipe.status());
  fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  host_ = host;
  read_ = std::move(pipe->read);
  return std::move(pipe->write);
}

void RemoteInput::Advance() {
  char bytes[kBlockBytes];
  const ssize_t size = read(read_.get(), bytes, sizeof(bytes));
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
    return;
  }
  const auto count = static_cast<size_t>(std::max<ssize_t>(size, 0));
  host_->Send(FrameKind::kInput, 0, {bytes, count});
  under_way_bytes_ += static_cast<uint32_t>(count);
  if (count == 0) {
    read_.Reset();
  }
}

void RemoteInput::OnTaken(uint32_t bytes) { under_way_bytes_ -= std::min(under_way_bytes_, bytes); }

}  // namespace ferry::tools

#include "tools/ferryrun/abort_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace ferry::tools {

Status AbortPipe::GiveTo(RankCommand* command) {
  if (!pipe_.read.valid()) {
    StatusOr<Pipe> made = MakePipe();
    FERRY_RETURN_IF_ERROR(made.status());
    fcntl(made->read.get(), F_SETFL, O_NONBLOCK);
    pipe_ = std::move(*made);
  }
  command->inherited_fd = pipe_.write.get();
  SetVariables({"FERRY_ABORT_FD=" + std::to_string(pipe_.write.get())}, &command->environment);
  return {};
}

std::optional<AbortNotice> AbortPipe::Read() const {
  AbortNotice notice{};
  if (!pipe_.read.valid() || read(pipe_.read.get(), &notice, sizeof(notice)) != sizeof(notice)) {
    return std::nullopt;
  }
  return notice;
}

}  // namespace ferry::tools

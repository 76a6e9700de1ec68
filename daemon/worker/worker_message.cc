#include "daemon/worker/worker_message.h"

#include "common/version.h"

namespace ferry::daemon {

WorkerMessage MakeWorkerMessage(WorkerMessageKind kind) {
  WorkerMessage message{};
  message.magic = kWorkerMagic;
  message.kind = static_cast<uint32_t>(kind);
  message.layout_version = kLayoutVersion;
  return message;
}

}  // namespace ferry::daemon

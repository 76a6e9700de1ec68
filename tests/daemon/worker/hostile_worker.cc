// A worker process as its user might replace it: its first argument, the job's name, selects what
// it does wrong. See worker_supervisor_test.cc.
#include <string.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "common/version.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/worker_message.h"

namespace {

using ferry::daemon::kWorkerSocket;
using ferry::daemon::MakeWorkerMessage;
using ferry::daemon::SendPacket;
using ferry::daemon::WorkerMessage;
using ferry::daemon::WorkerMessageKind;

void Say(const WorkerMessage& message) { (void)SendPacket(kWorkerSocket, message).ok(); }

void SayReady() { Say(MakeWorkerMessage(WorkerMessageKind::kReady)); }

void SayReach(uint32_t rank) {
  WorkerMessage reach = MakeWorkerMessage(WorkerMessageKind::kReach);
  reach.rank = rank;
  Say(reach);
}

// Reads until it was asked: the question comes second.
void ReadTwo() {
  ferry::daemon::SocketPacket packet;
  for (int got = 0; got < 2;) {
    const auto received = ReceivePacket(kWorkerSocket, &packet);
    got += received.ok() && *received == ferry::daemon::Received::kPacket ? 1 : 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wrong = argc == 2 ? argv[1] : "";
  if (wrong == "ends") {
    return 7;
  }
  if (wrong == "other-release") {
    WorkerMessage ready = MakeWorkerMessage(WorkerMessageKind::kReady);
    ready.layout_version = ferry::kLayoutVersion + 1;
    Say(ready);
  } else if (wrong == "short-message") {
    (void)SendPacket(kWorkerSocket, 17).ok();
  } else if (wrong == "no-magic") {
    Say({});
  } else if (wrong == "unknown-kind") {
    SayReady();
    SayReach(0);
    WorkerMessage message = MakeWorkerMessage(WorkerMessageKind::kWake);
    Say(message);
  } else if (wrong == "descriptors") {
    const std::array<int, 2> fds = {0, 1};
    (void)SendPacket(kWorkerSocket, MakeWorkerMessage(WorkerMessageKind::kReady), fds).ok();
  } else if (wrong == "many-descriptors") {
    const std::array<int, 4> fds = {0, 0, 0, 0};
    while (SendPacket(kWorkerSocket, MakeWorkerMessage(WorkerMessageKind::kReady), fds).ok()) {
    }
  } else if (wrong == "not-ready") {
    SayReach(0);
  } else if (wrong == "not-asked") {
    SayReady();
    SayReach(12345);
  } else if (wrong == "imports-unasked") {
    SayReady();
    Say(MakeWorkerMessage(WorkerMessageKind::kImport));
  } else if (wrong == "imports-twice") {
    SayReady();
    ReadTwo();
    WorkerMessage refused = MakeWorkerMessage(WorkerMessageKind::kImport);
    refused.region = 5;
    refused.code = 1;
    memset(refused.text, '\n', sizeof(refused.text));  // nowhere ended
    memcpy(refused.text, "no!", 3);
    Say(refused);
    Say(refused);
  } else if (wrong == "no-use") {
    SayReady();
    WorkerMessage trouble = MakeWorkerMessage(WorkerMessageKind::kTrouble);
    trouble.rank = 0;
    ReadTwo();
    Say(trouble);
  } else if (wrong == "hangs-up") {
    close(kWorkerSocket);
  } else if (wrong == "reads-nothing" || wrong == "stands-still") {
    SayReady();
  }
  while (true) {
    pause();
  }
}

#include "daemon/worker/worker_replies.h"

#include <string.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "common/version.h"
#include "daemon/sockets/packet_socket.h"

namespace ferry::daemon {
namespace {

constexpr int kMessagesAtOnce = 16;

Status Wrong(const std::string& text) { return {ErrorCode::kCorrupt, text}; }

}  // namespace

void WorkerReplies::Expect(std::shared_ptr<Session> session) {
  asked_[session->rank] = std::move(session);
}

StatusOr<Received> WorkerReplies::Read(int socket, uid_t sender, const WorkerNews& news) {
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    ForeignPacket packet(sender);
    const StatusOr<Received> received = ReceiveForeignPacket(socket, &packet);
    if (!received.ok()) {
      return Wrong("sent what no worker sends: " + received.status().message());
    }
    if (*received != Received::kPacket) {
      return *received;
    }
    const auto* message = packet.As<WorkerMessage>();
    if (message == nullptr || message->magic != kWorkerMagic || !packet.fds.empty()) {
      return Wrong("sent what no worker sends");
    }
    FERRY_RETURN_IF_ERROR(Handle(*message, news));
  }
  return Received::kPacket;
}

Status WorkerReplies::Handle(const WorkerMessage& message, const WorkerNews& news) {
  const auto kind = static_cast<WorkerMessageKind>(message.kind);
  if (kind == WorkerMessageKind::kReady && !ready_) {
    ready_ = true;
    return message.layout_version == kLayoutVersion
               ? Status()
               : Wrong("is of another release than ferryd: install both from the same one");
  }
  if (ready_ && kind == WorkerMessageKind::kImport) {
    return HandleImport(message, news);
  }
  const auto asked = asked_.find(message.rank);
  if (!ready_ || asked == asked_.end()) {
    return Wrong("answers what it was not asked");
  }
  if (kind == WorkerMessageKind::kTrouble) {
    return Wrong("cannot use the memory of a rank of its job");
  }
  if (kind != WorkerMessageKind::kReach) {
    return Wrong("sent a message of an unknown kind");
  }
  Session& session = *asked->second;
  session.private_memory_reachable = message.code == 0;
  session.reach_settled = true;
  asked_.erase(asked);  // `session` may go with it
  news.on_reach(message.rank);
  return {};
}

Status WorkerReplies::HandleImport(const WorkerMessage& message, const WorkerNews& news) {
  const auto asked = imports_.find({message.rank, message.region});
  if (asked == imports_.end()) {
    return Wrong("answers what it was not asked");
  }
  imports_.erase(asked);
  if (message.code == 0) {
    news.on_import(message.rank, message.region, {});
    return {};
  }
  // For a log: the job's user may have written it.
  std::string text(message.text, strnlen(message.text, sizeof(message.text)));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isprint(c) == 0; }, '?');
  news.on_import(message.rank, message.region, {ErrorCode::kSystem, text});
  return {};
}

}  // namespace ferry::daemon

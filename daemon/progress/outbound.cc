#include "daemon/progress/outbound.h"

#include <algorithm>

namespace ferry::daemon {
namespace {

void Seal(const Job& job, const Route& route, std::span<const std::byte> body,
          PacketHeader* header) {
  header->magic = kPacketMagic;
  header->version = kPacketVersion;
  header->key = route.send_key;
  header->job_key = job.plan.key;
  header->source_node = job.plan.node;
  header->body_bytes = static_cast<uint32_t>(body.size());
}

}  // namespace

ErrorCode Outbound::Send(Job& job, PacketHeader header, std::span<const std::byte> body,
                         uint64_t now_ns) {
  const Route& route = job.RouteTo(header.destination);
  if (route.link == nullptr) {
    return ErrorCode::kWouldBlock;
  }
  Seal(job, route, body, &header);
  return SendTo(route.link, BytesOf(header), body, now_ns);
}

ErrorCode Outbound::SendTo(Link* link, std::span<const std::byte> header,
                           std::span<const std::byte> body, uint64_t now_ns) {
  if (link->failure != ErrorCode::kOk) {
    return link->failure;
  }
  const ErrorCode code =
      transport_.SendMessage(link->peer, header, body, MessageContext(link), now_ns);
  if (code == ErrorCode::kOk) {
    ++link->outstanding;
  } else if (code != ErrorCode::kWouldBlock) {
    link->broken = true;
  }
  return code;
}

void Outbound::PostBytes(Job& job, PacketHeader header, std::span<const std::byte> body,
                         uint64_t now_ns) {
  const Route& route = job.RouteTo(header.destination);
  if (route.link == nullptr) {
    return;
  }
  Seal(job, route, body, &header);
  const std::span<const std::byte> head = BytesOf(header);
  if (!route.link->waiting.empty() ||
      SendTo(route.link, head, body, now_ns) == ErrorCode::kWouldBlock) {
    Link::Waiting waiting;
    waiting.bytes.assign(head.begin(), head.end());
    waiting.bytes.insert(waiting.bytes.end(), body.begin(), body.end());
    route.link->waiting.push_back(std::move(waiting));
  }
}

void Outbound::Flush(uint64_t now_ns) {
  for (const auto& [incarnation, link] : directory_.links()) {
    while (!link->waiting.empty() &&
           SendTo(link.get(), link->waiting.front().bytes, {}, now_ns) != ErrorCode::kWouldBlock) {
      link->waiting.pop_front();
    }
  }
}

// A lost message breaks the order of all that follow, so the link is given up with it.
void Outbound::OnComplete(Link* link, ErrorCode code) {
  --link->outstanding;
  if (code != ErrorCode::kOk && link->failure == ErrorCode::kOk) {
    link->broken = true;
  }
}

bool Outbound::busy() const {
  return std::any_of(directory_.links().begin(), directory_.links().end(), [](const auto& entry) {
    return entry.second->outstanding != 0 || !entry.second->waiting.empty();
  });
}

}  // namespace ferry::daemon

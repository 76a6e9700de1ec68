#include "internode/delivery/outbound.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ferry::progress {
namespace {

// The longest body that is gathered: copying more costs as much as sending it by itself.
constexpr size_t kGatherBytes = 1024;

void Seal(const Job& job, const Route& route, uint64_t body_bytes, PacketHeader* header) {
  header->magic = kPacketMagic;
  header->version = kPacketVersion;
  header->key = route.send_key;
  header->job_key = job.plan.key;
  header->source_node = job.plan.node;
  header->body_bytes = static_cast<uint32_t>(body_bytes);
}

void Append(std::span<const std::byte> bytes, std::vector<std::byte>* frame) {
  frame->insert(frame->end(), bytes.begin(), bytes.end());
}

}  // namespace

ErrorCode Outbound::Send(Job& job, PacketHeader header, std::span<const std::byte> body,
                         uint64_t now_ns) {
  return SendParts(job, header, {}, body, now_ns);
}

ErrorCode Outbound::SendParts(Job& job, PacketHeader header, std::span<const std::byte> words,
                              std::span<const std::byte> data, uint64_t now_ns) {
  const Route& route = job.RouteTo(header.destination);
  if (!route.IsOpen()) [[unlikely]] {
    return WithoutWay(job, header.destination);
  }
  Seal(job, route, words.size() + data.size(), &header);
  return SendTo(route.link, header, words, data, now_ns);
}

// A rank that is gone needs no way any more.
ErrorCode Outbound::WithoutWay(Job& job, uint32_t destination) {
  if (const ErrorCode ended = job.ended[destination]; ended != ErrorCode::kOk) {
    return ended;
  }
  WantWay(job, destination);
  return ErrorCode::kWouldBlock;
}

void Outbound::WantWay(Job& job, uint32_t destination) {
  Route& route = job.RouteTo(destination);
  if (route.link == nullptr && hooks_.on_way_wanted && !std::exchange(route.is_wanted, true)) {
    hooks_.on_way_wanted(job.plan.job_id, job.plan.node_of_rank[destination]);
  }
}

ErrorCode Outbound::SendJoined(Job& job, const PacketHeader& header,
                               std::span<const std::byte> words, std::span<const std::byte> data,
                               uint64_t now_ns) {
  return TryJoin(job, job.RouteTo(header.destination), header, words, data)
             ? ErrorCode::kOk
             : SendParts(job, header, words, data, now_ns);
}

bool Outbound::TryJoin(const Job& job, const Route& route, const PacketHeader& header,
                       std::span<const std::byte> words, std::span<const std::byte> data) {
  Link* const link = route.link;
  if (!route.IsOpen() || link->failure != ErrorCode::kOk || link->broken || link->frame.empty() ||
      data.size() > kGatherBytes ||
      link->frame.size() + words.size() + data.size() + kPacketAlignment > kFrameBytes) {
    return false;
  }
  PacketHeader last;
  std::memcpy(&last, link->frame.data() + link->last_packet, sizeof(last));
  if (last.kind != header.kind || last.source != header.source ||
      last.destination != header.destination || last.stream != header.stream || last.number == 0 ||
      last.key != route.send_key || last.job_key != job.plan.key) {
    return false;
  }
  Append(words, &link->frame);
  Append(data, &link->frame);
  link->frame.resize(link->frame.size() + PaddingOf(words.size() + data.size()));
  last.body_bytes = static_cast<uint32_t>(link->frame.size() - link->last_packet - sizeof(last));
  std::memcpy(link->frame.data() + link->last_packet, &last, sizeof(last));
  return true;
}

ErrorCode Outbound::SendWith(Job& job, PacketHeader header, std::span<const std::byte> body,
                             const transport::Attachment& data, uint64_t now_ns, uint64_t context) {
  if (!job.RouteTo(header.destination).IsOpen()) [[unlikely]] {
    return WithoutWay(job, header.destination);
  }
  Link* const link = job.RouteTo(header.destination).link;
  if (data.bytes == 0 || link->failure != ErrorCode::kOk) {
    const ErrorCode code = Send(job, header, body, now_ns);
    if (code == ErrorCode::kOk) {  // at once: the transfer may begin while we look for more
      (void)SendFrame(link, {}, now_ns);
    }
    return code;
  }
  if (link->broken) {
    return ErrorCode::kWouldBlock;
  }
  Seal(job, job.RouteTo(header.destination), body.size() + data.bytes, &header);
  if (const ErrorCode code = MakeRoom(link, sizeof(header) + body.size(), now_ns);
      code != ErrorCode::kOk) {
    return code;
  }
  const size_t before = link->frame.size();
  Append(BytesOf(header), &link->frame);
  Append(body, &link->frame);
  const ErrorCode code = transport_.SendMessageFrom(
      link->peer, link->frame, data, context != 0 ? context : MessageContext(link), now_ns);
  if (code == ErrorCode::kWouldBlock) {
    link->frame.resize(before);
    return code;
  }
  return EndFrame(link, code);
}

// Sends the frame if so many bytes more do not fit into it.
ErrorCode Outbound::MakeRoom(Link* link, size_t bytes, uint64_t now_ns) {
  return link->frame.size() + bytes + kPacketAlignment > kFrameBytes ? SendFrame(link, {}, now_ns)
                                                                     : ErrorCode::kOk;
}

ErrorCode Outbound::SendTo(Link* link, const PacketHeader& header, std::span<const std::byte> words,
                           std::span<const std::byte> data, uint64_t now_ns) {
  if (link->failure != ErrorCode::kOk) {
    return link->failure;
  }
  if (link->broken) {
    return ErrorCode::kWouldBlock;
  }
  if (const ErrorCode code = MakeRoom(link, sizeof(header) + words.size() + data.size(), now_ns);
      code != ErrorCode::kOk) {
    return code;
  }
  const size_t before = link->frame.size();
  Append(BytesOf(header), &link->frame);
  Append(words, &link->frame);
  if (data.size() > kGatherBytes) {
    const ErrorCode code = SendFrame(link, data, now_ns);
    if (code != ErrorCode::kOk) {
      link->frame.resize(std::min(before, link->frame.size()));
    }
    return code;
  }
  Append(data, &link->frame);
  link->frame.resize(link->frame.size() + PaddingOf(words.size() + data.size()));
  link->last_packet = before;
  return ErrorCode::kOk;
}

// Hands the frame, with `body` behind it, to the transport.
ErrorCode Outbound::SendFrame(Link* link, std::span<const std::byte> body, uint64_t now_ns) {
  if (link->frame.empty()) {
    return ErrorCode::kOk;
  }
  if (link->broken) {
    return ErrorCode::kWouldBlock;
  }
  const ErrorCode code =
      transport_.SendMessage(link->peer, link->frame, body, MessageContext(link), now_ns);
  return code == ErrorCode::kWouldBlock ? code : EndFrame(link, code);
}

// The transport has taken the frame, or refused it for good: then all waits until the link is
// judged.
ErrorCode Outbound::EndFrame(Link* link, ErrorCode code) {
  link->frame.clear();
  if (code == ErrorCode::kOk) {
    ++link->outstanding;
    return code;
  }
  link->broken = true;
  return ErrorCode::kWouldBlock;
}

void Outbound::PostBytes(Job& job, PacketHeader header, std::span<const std::byte> words,
                         std::span<const std::byte> data, uint64_t now_ns) {
  const Route& route = job.RouteTo(header.destination);
  // A broken one ends its life with what was lost; one that opens takes nothing yet.
  if (!route.IsOpen() || route.link->broken) {
    return;
  }
  Link& link = *route.link;
  Seal(job, route, words.size() + data.size(), &header);
  if (link.waiting.empty() &&
      SendTo(&link, header, words, data, now_ns) != ErrorCode::kWouldBlock) {
    return;
  }
  if (link.broken) {
    return;
  }
  Link::Waiting waiting{header, {words.begin(), words.end()}};
  Append(data, &waiting.body);
  link.waiting_bytes += waiting.bytes();
  link.waiting.push_back(std::move(waiting));
  if (link.waiting_bytes > kMostBytesWaiting) {
    Break(link, "it asks for more than it takes: " + std::to_string(link.waiting.size()) +
                    " answers of " + std::to_string(link.waiting_bytes >> 20) +
                    " MiB wait for it, the most that a node may leave unread");
  }
}

void Outbound::Break(Link& link, std::string why) {
  if (link.failure != ErrorCode::kOk || link.broken) {
    return;
  }
  link.broken = true;
  link.trouble = std::move(why);
  link.waiting.clear();
  link.waiting_bytes = 0;
}

void Outbound::Flush(uint64_t now_ns) {
  for (const auto& [number, link] : directory_.links()) {
    while (!link->waiting.empty() &&
           SendTo(link.get(), link->waiting.front().header, {}, link->waiting.front().body,
                  now_ns) != ErrorCode::kWouldBlock) {
      link->waiting_bytes -= link->waiting.front().bytes();
      link->waiting.pop_front();
    }
    (void)SendFrame(link.get(), {}, now_ns);  // without a slot it waits for the next turn
  }
}

// A lost message breaks the order of all that follow, so this life of the link ends with it.
void Outbound::OnComplete(Link* link, ErrorCode code) {
  --link->outstanding;
  if (code != ErrorCode::kOk && link->failure == ErrorCode::kOk) {
    link->broken = true;
  }
}

bool Outbound::any_broken() const {
  return std::any_of(directory_.links().begin(), directory_.links().end(), [](const auto& entry) {
    const Link& link = *entry.second;
    return link.broken && !link.reported && link.failure == ErrorCode::kOk;
  });
}

bool Outbound::busy() const {
  return std::any_of(directory_.links().begin(), directory_.links().end(), [](const auto& entry) {
    const Link& link = *entry.second;
    return link.outstanding != 0 || !link.frame.empty() || !link.waiting.empty();
  });
}

}  // namespace ferry::progress

// Packets that a stranger sends, by a transport of its own, to a plane of progress_fixture.h.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <utility>

#include "common/clock.h"
#include "daemon/plane/data_plane.h"
#include "internode/wire/wire.h"
#include "tests/internode/core/progress_fixture.h"
#include "transports/loader/loader.h"

namespace ferry::daemon {

// As node `from` writes it to node `to`; the test says the rest.
inline progress::PacketHeader ForgedHeader(uint32_t from, uint32_t to, progress::PacketKind kind) {
  progress::PacketHeader header{};
  header.magic = progress::kPacketMagic;
  header.version = progress::kPacketVersion;
  header.kind = static_cast<uint8_t>(kind);
  header.key = 0x1000 + from * 16 + to;
  header.job_key = 0x1234;
  header.source_node = from;
  return header;
}

// Returns once the packet has come.
inline void SayAsStranger(DataPlane& plane, const progress::PacketHeader& header,
                          std::span<const std::byte> body) {
  class Ignore final : public transport::CompletionSink {
    void OnReceive(transport::PeerId, std::span<const std::byte>) override {}
    void OnComplete(uint64_t, ErrorCode) override {}
  } ignore;
  transport::TransportOptions options;
  options.provider = PlaneProvider();
  auto stranger = std::move(*transport::OpenTransport(options));
  const auto peer = stranger->AddPeer(plane.FabricAddressFor(0));
  ASSERT_TRUE(peer.ok());
  const uint64_t before = plane.Nic().messages_received;
  ASSERT_TRUE(Eventually([&] {
    stranger->Poll(ignore, 8, MonotonicNs());
    return stranger->SendMessage(*peer, progress::BytesOf(header), body, 0, MonotonicNs()) ==
           ErrorCode::kOk;
  }));
  ASSERT_TRUE(Eventually([&] {
    stranger->Poll(ignore, 8, MonotonicNs());
    return plane.Nic().messages_received > before;
  }));
}

}  // namespace ferry::daemon

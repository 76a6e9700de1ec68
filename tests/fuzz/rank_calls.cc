#include "tests/fuzz/rank_calls.h"

#include <cstring>
#include <iterator>
#include <span>

#include "common/version.h"

namespace ferry::fuzz {
namespace {

using attach::Kind;

constexpr uint32_t kRanks = 3;
constexpr uint32_t kMostOffers = 4;

// A small number, one that programs stumble over, or any.
uint64_t Number(FuzzInput& input) {
  constexpr uint64_t kEdges[] = {63,         64,         255,        256,        4095,
                                 4096,       65'536,     0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                 1ULL << 32, 1ULL << 47, 1ULL << 63, ~0ULL - 1,  ~0ULL};
  switch (input.Below(3)) {
    case 0:
      return input.Below(8);
    case 1:
      return kEdges[input.Below(std::size(kEdges))];
    default:
      return input.Take<uint64_t>();
  }
}
template <typename T>
T Mostly(FuzzInput& input, T good) {
  return input.Below(8) == 7 ? static_cast<T>(Number(input)) : good;
}

attach::AttachHeader Header(FuzzInput& input, Kind kind) {
  return {attach::kMagic, static_cast<uint32_t>(kind), input.Below(4), kLayoutVersion,
          kProtocolVersion};
}
attach::PairKey Key(FuzzInput& input) {
  return {input.Below(2), Mostly(input, input.Below(kRanks)), Mostly(input, input.Below(kRanks)),
          static_cast<int32_t>(input.Below(3)), Mostly<uint64_t>(input, input.Below(4))};
}
attach::MemoryPlace Place(FuzzInput& input) {
  return {Mostly<uint32_t>(input, 1), 0, Mostly<uint64_t>(input, input.Below(8) * 4096)};
}

template <typename T>
void Append(std::vector<std::byte>* packet, const T& message) {
  const auto bytes = std::as_bytes(std::span(&message, 1));
  packet->insert(packet->end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> Offers(FuzzInput& input) {
  attach::OfferRequest request{Header(input, Kind::kOffer), input.Below(2), 0};
  const uint32_t count = input.Below(kMostOffers);
  request.count = Mostly(input, count);
  std::vector<std::byte> packet;
  Append(&packet, request);
  for (uint32_t i = 0; i < count; ++i) {
    attach::PairOffer offer{};
    offer.key = Key(input);
    offer.key.ordinal += i;
    offer.size_bytes = Mostly<uint64_t>(input, 64);
    offer.mode = Mostly<uint32_t>(input, 0);
    offer.cell_count = Mostly<uint32_t>(input, 1);
    offer.end = Place(input);
    offer.window = Place(input);
    offer.cells = Place(input);
    Append(&packet, offer);
  }
  return packet;
}

std::vector<std::byte> AnyCall(FuzzInput& input, bool ends_jobs) {
  std::vector<std::byte> packet;
  switch (input.Below(ends_jobs ? 10 : 8)) {
    case 0:
      Append(&packet, attach::JoinRequest{Header(input, Kind::kJoin), Mostly<uint64_t>(input, 1)});
      break;
    case 1:
      Append(&packet, attach::PeersRequest{Header(input, Kind::kPeers),
                                           Mostly(input, input.Below(kRanks)), 0});
      break;
    case 2:
      Append(&packet, attach::RegionEndRequest{Header(input, Kind::kRegionEnd),
                                               Mostly(input, 1 + input.Below(3)), 0});
      break;
    case 3:
    case 4:
      return Offers(input);
    case 5:
      Append(&packet, attach::WithdrawRequest{Header(input, Kind::kWithdraw), Key(input),
                                              Number(input), input.Below(2), 0});
      break;
    case 6:
      Append(&packet, attach::WhyRequest{Header(input, Kind::kWhy)});
      break;
    case 7: {
      attach::JobRequest request{};
      request.header = Header(input, Kind::kCreateJob);
      request.size = Mostly(input, kRanks);
      request.node = Mostly<uint32_t>(input, 0);
      request.node_count = Mostly<uint32_t>(input, 1);
      request.list_bytes = static_cast<uint32_t>(Number(input));
      request.job_secret_bytes = Mostly<uint32_t>(input, 32);
      Append(&packet, request);
      break;
    }
    case 8:
      Append(&packet,
             attach::DetachRequest{Header(input, Kind::kDetach), Mostly<uint64_t>(input, 1)});
      break;
    default: {
      attach::AbortRequest request{};
      request.header = Header(input, Kind::kAbort);
      request.exit_code = static_cast<int32_t>(Number(input));
      std::memset(request.reason, 'x', input.Below(2) * sizeof(request.reason));
      Append(&packet, request);
    }
  }
  return packet;
}

}  // namespace

std::vector<std::byte> AnyRankCall(FuzzInput& input, bool ends_jobs) {
  std::vector<std::byte> packet = AnyCall(input, ends_jobs);
  for (uint32_t n = input.Below(8) == 7 ? input.Below(4) : 0; n > 0; --n) {
    packet[input.Take<uint16_t>() % packet.size()] = static_cast<std::byte>(input.Take<uint8_t>());
  }
  if (input.Below(16) == 15) {
    packet.resize(packet.size() - 1);
  }
  return packet;
}

}  // namespace ferry::fuzz

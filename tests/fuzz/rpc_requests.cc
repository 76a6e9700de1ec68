#include "tests/fuzz/rpc_requests.h"

#include <iterator>

#include "daemon/tls/secrets.h"

namespace ferry::fuzz {
namespace {

constexpr uint32_t kRanks = 3;

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
uint32_t Rank(FuzzInput& input) { return Mostly(input, input.Below(kRanks)); }
int32_t Tag(FuzzInput& input) { return static_cast<int32_t>(input.Below(3)); }
std::string Text(FuzzInput& input) { return input.TakeText(input.Below(128)); }
std::string Job(FuzzInput& input, const RpcWorld& world) {
  return input.Below(16) == 15 ? Text(input) : Pick(input, world.jobs);
}

// Some, none, the same again and again, or far too many.
template <typename Add>
void Repeat(FuzzInput& input, Add add) {
  constexpr uint32_t kCounts[] = {1, 1, 2, 3, 4, 0, 100, 20'000};
  const uint32_t count = kCounts[input.Below(std::size(kCounts))];
  for (uint32_t i = 0; i < count; ++i) {
    add();  // beyond the input's end always the same
  }
}

// With something behind it now and then: fields that come twice, others', or noise.
template <typename Message>
std::string BytesOf(FuzzInput& input, const Message& message) {
  std::string bytes = message.SerializeAsString();
  return input.Below(8) == 7 ? bytes + Text(input) : bytes;
}

template <typename Message>
std::string Plain(FuzzInput& input, const RpcWorld&) {
  return BytesOf(input, Message());
}

// ---- Peer ----

void Fill(FuzzInput& input, control::PairKey* key) {
  key->set_context(input.Below(2));
  key->set_source(Rank(input));
  key->set_destination(Rank(input));
  key->set_tag(Tag(input));
  key->set_ordinal(Mostly<uint64_t>(input, input.Below(4)));
}

// Mostly in the name of its own node, with the matching proof.
template <typename Request>
void Sign(FuzzInput& input, const RpcWorld& world, Request* request) {
  request->set_incarnation(input.Below(8) == 7 ? Pick(input, world.incarnations)
                                               : world.node.incarnation());
  request->set_job_id(Job(input, world));
  request->set_job_proof(input.Below(8) == 7 ? Text(input)
                                             : daemon::JobProof(world.secret, request->job_id(),
                                                                request->incarnation()));
}

std::string Hello(FuzzInput& input, const RpcWorld& world) {
  control::HelloRequest request;
  *request.mutable_from() = world.node;
  switch (input.Below(8)) {
    case 5:
      request.mutable_from()->set_incarnation(Pick(input, world.incarnations));
      break;
    case 6:
      request.mutable_from()->set_control_address(Pick(input, world.addresses));
      break;
    case 7:
      request.mutable_from()->set_fabric_address(Text(input));
      request.mutable_from()->set_name(Text(input));
      break;
    default:
      break;
  }
  request.mutable_from()->set_protocol_version(
      Mostly<uint32_t>(input, world.node.protocol_version()));
  request.set_life(Mostly<uint64_t>(input, input.Below(4)));
  request.set_token(input.Below(8) == 7 ? Text(input) : world.node_token);
  return BytesOf(input, request);
}

std::string Joined(FuzzInput& input, const RpcWorld& world) {
  control::JoinedRequest request;
  Sign(input, world, &request);
  request.set_node(Mostly<uint32_t>(input, 1));
  request.set_life(Mostly<uint64_t>(input, input.Below(4)));
  Repeat(input, [&] {
    control::JobRank* rank = request.add_ranks();
    rank->set_rank(Mostly<uint32_t>(input, 2));
    rank->set_private_memory_reachable(input.Below(2) == 1);
  });
  return BytesOf(input, request);
}

std::string Left(FuzzInput& input, const RpcWorld& world) {
  control::LeftRequest request;
  Sign(input, world, &request);
  Repeat(input, [&] {
    control::RankEnd* end = request.add_ranks();
    end->set_rank(Mostly<uint32_t>(input, 2));
    end->set_orderly(input.Below(2) == 1);
    end->set_error(static_cast<int32_t>(Number(input)));
    end->set_reason(Text(input));
  });
  request.set_job_aborted(input.Below(8) == 7);
  request.set_abort_reason(Text(input));
  return BytesOf(input, request);
}

std::string Heartbeat(FuzzInput& input, const RpcWorld& world) {
  control::HeartbeatRequest request;
  request.set_incarnation(input.Below(2) == 0 ? world.node.incarnation()
                                              : Pick(input, world.incarnations));
  request.set_life(Mostly<uint64_t>(input, input.Below(4)));
  return BytesOf(input, request);
}

std::string PeerWhy(FuzzInput& input, const RpcWorld& world) {
  control::PeerWhyRequest request;
  Sign(input, world, &request);
  request.set_rank(Rank(input));
  return BytesOf(input, request);
}

std::string Matches(FuzzInput& input, const RpcWorld& world) {
  control::PairNewsRequest request;
  Sign(input, world, &request);
  request.set_node(Mostly<uint32_t>(input, 1));
  uint64_t ordinal = 0;
  const bool all_alike = input.Below(4) == 3;
  Repeat(input, [&] {
    control::PairNews* news = request.add_news();
    news->set_kind(static_cast<control::PairNews::Kind>(1 + input.Below(4)));
    Fill(input, news->mutable_key());
    if (!all_alike) {
      news->mutable_key()->set_ordinal(news->key().ordinal() + ordinal++);
    }
    news->set_size_bytes(Mostly<uint64_t>(input, 64));
    news->set_mode(Mostly<uint32_t>(input, 0));
    news->set_channel(Mostly<uint64_t>(input, input.Below(4)));
    news->set_error(static_cast<int32_t>(input.Below(40)));
    news->set_rounds(Number(input));
    news->set_cells(Mostly<uint32_t>(input, 1));
  });
  return BytesOf(input, request);
}

// ---- Launcher and Admin ----

std::string CreateJob(FuzzInput& input, const RpcWorld& world) {
  control::CreateJobRequest request = ThreeRanks(world, Job(input, world));
  request.set_size(Mostly<uint32_t>(input, kRanks));
  request.set_node(Mostly<uint32_t>(input, 0));
  switch (input.Below(8)) {
    case 4:
      request.set_uid(Mostly<uint32_t>(input, 0));
      break;
    case 5:
      request.set_secret(Text(input));
      break;
    case 6:
      request.clear_node_addresses();
      Repeat(input, [&] { request.add_node_addresses(Pick(input, world.addresses)); });
      break;
    case 7:
      request.clear_node_of_rank();
      Repeat(input, [&] { request.add_node_of_rank(Mostly<uint32_t>(input, input.Below(2))); });
      request.set_size(Mostly<uint32_t>(input, request.node_of_rank_size()));
      break;
    default:
      break;
  }
  return BytesOf(input, request);
}

std::string DestroyJob(FuzzInput& input, const RpcWorld& world) {
  control::DestroyJobRequest request;
  request.set_job_id(Job(input, world));
  return BytesOf(input, request);
}

std::string Counters(FuzzInput& input, const RpcWorld& world) {
  control::CountersRequest request;
  request.set_job_id(input.Below(2) == 0 ? "" : Job(input, world));
  request.set_rank(input.Below(2) == 0 ? -1 : static_cast<int32_t>(Rank(input)));
  return BytesOf(input, request);
}

std::string Why(FuzzInput& input, const RpcWorld& world) {
  control::WhyRequest request;
  request.set_job_id(input.Below(4) == 3 ? "" : Job(input, world));
  request.set_rank(Rank(input));
  request.set_all_ranks(input.Below(2) == 1);
  return BytesOf(input, request);
}

constexpr RpcMethod kMethods[] = {
    {RpcService::kLauncher, "/ferry.control.Launcher/CreateJob", CreateJob},
    {RpcService::kLauncher, "/ferry.control.Launcher/DestroyJob", DestroyJob, true},
    {RpcService::kLauncher, "/ferry.control.Launcher/Status", Plain<control::StatusRequest>},
    {RpcService::kLauncher, "/ferry.control.Launcher/Sessions", Plain<control::SessionsRequest>},
    {RpcService::kLauncher, "/ferry.control.Launcher/Counters", Counters},
    {RpcService::kLauncher, "/ferry.control.Launcher/Why", Why},
    {RpcService::kLauncher, "/ferry.control.Launcher/Nics", Plain<control::NicsRequest>},
    {RpcService::kLauncher, "/ferry.control.Launcher/Gpus", Plain<control::GpusRequest>},
    {RpcService::kPeer, "/ferry.control.Peer/Hello", Hello},
    {RpcService::kPeer, "/ferry.control.Peer/Joined", Joined},
    {RpcService::kPeer, "/ferry.control.Peer/Left", Left},
    {RpcService::kPeer, "/ferry.control.Peer/Heartbeat", Heartbeat},
    {RpcService::kPeer, "/ferry.control.Peer/Why", PeerWhy},
    {RpcService::kPeer, "/ferry.control.Peer/Matches", Matches},
    {RpcService::kAdmin, "/ferry.control.Admin/CreateJob", CreateJob},
    {RpcService::kAdmin, "/ferry.control.Admin/DestroyJob", DestroyJob},
    {RpcService::kAdmin, "/ferry.control.Admin/Status", Plain<control::StatusRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Sessions", Plain<control::SessionsRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Counters", Counters},
    {RpcService::kAdmin, "/ferry.control.Admin/Nics", Plain<control::NicsRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Gpus", Plain<control::GpusRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Why", Why},
    {RpcService::kAdmin, "/ferry.control.Admin/Drain", Plain<control::DrainRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Shutdown", Plain<control::ShutdownRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/StartTrace", Plain<control::StartTraceRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/StopTrace", Plain<control::StopTraceRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Faults", Plain<control::FaultsRequest>},
    {RpcService::kAdmin, "/ferry.control.Admin/Watch", Plain<control::WatchRequest>},
};

}  // namespace

std::span<const RpcMethod> RpcMethods() { return kMethods; }

control::CreateJobRequest ThreeRanks(const RpcWorld& world, const std::string& job) {
  control::CreateJobRequest request;
  request.set_job_id(job);
  request.set_secret(world.secret);
  request.set_size(kRanks);
  for (const uint32_t node : {0U, 0U, 1U}) {
    request.add_node_of_rank(node);
  }
  request.add_node_addresses(world.addresses[0]);
  request.add_node_addresses(world.addresses[1]);
  return request;
}

}  // namespace ferry::fuzz
